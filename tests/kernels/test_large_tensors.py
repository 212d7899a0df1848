"""Tensors of more than 2^31 elements: an op of each kind that moves or reduces them.

Bytes keep them as small as can be: 2.2 GB each. All elements are 0 but few, which are where
an index of 32 bits does not reach.
"""

from collections.abc import Callable

import pytest
import torch

import xpurt

pytestmark = pytest.mark.mappings("CPU", "GPU")

ROWS, COLUMNS = 33_001, 65_537  # 2.16e9 elements
LAST = ROWS * COLUMNS - 1

OPS: dict[str, Callable[[torch.Tensor], object]] = {
    "pointwise": lambda x: int(x.add_(1).sub_(1)[-1, -1]),
    "strided": lambda x: int(x.t().neg()[-1, -1]),
    "copy": lambda x: int(x.t().contiguous()[-1, -1]),
    "sum of all": lambda x: int(x.sum()),
    "sum of columns": lambda x: int(x.sum(0)[-1]),
    "sum of rows": lambda x: int(x.sum(1)[-1]),
    "extreme": lambda x: int(x.view(-1).argmax()),
    "flip": lambda x: int(x.flip(0)[0, -1]),
    "select": lambda x: int(x.index_select(0, torch.tensor([ROWS - 1], device=x.device))[0, -1]),
    "take": lambda x: int(x.take(torch.tensor([LAST], device=x.device))[0]),
    "index": lambda x: int(x[torch.tensor([ROWS - 1], device=x.device)][0, -1]),
    "scatter": lambda x: int(
        x.index_fill_(1, torch.tensor([COLUMNS - 1], device=x.device), 7)[-1, -1]
    ),
    "nonzero": lambda x: (x > 0).any().item(),
}  # fmt: skip
EXPECTED = {
    "strided": -7, "extreme": LAST, "nonzero": True,
    "sum of all": 7, "sum of columns": 7, "sum of rows": 7,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", OPS)
def test_an_index_has_more_than_32_bits(name: str, xpu: torch.device) -> None:
    x = torch.zeros(ROWS, COLUMNS, dtype=torch.int8, device=xpu)
    x[-1, -1] = 7
    with xpurt.kernel_policy("sycl"):
        assert OPS[name](x) == EXPECTED.get(name, 7)


def test_a_work_item_finds_an_element_beyond_4_294_967_296(xpu: torch.device) -> None:
    """Few work-items walk through many elements, here those of an expanded row."""
    columns = 70_000
    x = torch.arange(columns, dtype=torch.int32, device=xpu).expand(columns, columns)
    places = [x.numel() - 1, (1 << 32) + 3, 5]
    with xpurt.kernel_policy("sycl"):
        found = x.take(torch.tensor(places, device=xpu)).tolist()
    assert found == [place % columns for place in places]
