"""Scaled dot product attention, forward and backward."""

from torch import Tensor
from torch.nn import functional as F

from xpurt_tools.bench.row import Row, Suite, on

# Batch, heads, length, width of a head, causal.
SHAPES = (
    (8, 8, 128, 64, False),
    (4, 12, 512, 64, False),
    (1, 12, 1024, 64, True),
    (2, 8, 512, 128, True),
)


def _row(shape: tuple[int, int, int, int, bool], *, backward: bool) -> Row:
    *sizes, causal = shape

    def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    name = "x".join(map(str, sizes)) + (" causal" if causal else "")
    return on(
        f"{name}, backward" if backward else name,
        attention,
        *[tuple(sizes)] * 3,
        backward=backward,
    )


ATTENTION = Suite(
    "attention",
    "scaled dot product attention, 4 shapes, forward and backward",
    target=0.9,
    rows=tuple(_row(each, backward=way) for way in (False, True) for each in SHAPES),
)
