"""Tensors without elements and without dimensions."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from xpurt.testing.oracle import agree

pytestmark = pytest.mark.usefixtures("policy")

OPS: dict[str, Callable[[torch.Tensor], object]] = {
    "add": lambda x: x + x,
    "add a number": lambda x: x + 1,
    "add_ a number": lambda x: x.add_(2),
    "broadcast": lambda x: x + x.new_ones(1),
    "broadcast to more": lambda x: x + x.new_ones(2, 1, 1),
    "exp": torch.exp,
    "where": lambda x: torch.where(x > 0, x, -x),
    "clamp": lambda x: x.clamp(0, 1),
    "sum": lambda x: x.sum(),
    "sum of the last": lambda x: x.sum(-1),
    "sum of the first, kept": lambda x: x.sum(0, keepdim=True),
    "mean": lambda x: x.mean(),
    "prod": lambda x: x.prod(-1),
    "all": lambda x: (x > 0).all(),
    "any": lambda x: (x > 0).any(-1),
    "amax": lambda x: x.amax(),
    "amax of the last": lambda x: x.amax(-1),
    "argmax": lambda x: x.argmax(),
    "max": lambda x: x.max(0),
    "cumsum": lambda x: x.cumsum(0),
    "sort": lambda x: x.sort(-1),
    "softmax": lambda x: x.softmax(-1),
    "mm": lambda x: x.reshape(x.numel(), 1).t() @ x.reshape(x.numel(), 1),
    "mm, outer": lambda x: x.reshape(-1, 1) @ x.reshape(1, -1),
    "mm of nothing": lambda x: x.new_ones(3, 0) @ x.new_ones(0, 4),
    "bmm of nothing": lambda x: x.new_ones(0, 3, 2) @ x.new_ones(0, 2, 4),
    "addmm of nothing": lambda x: torch.addmm(
        x.new_ones(4), x.new_ones(3, 0), x.new_ones(0, 4), beta=2
    ),
    "linear": lambda x: F.linear(x, x.new_ones(2, x.shape[-1] if x.dim() else 1)),
    "cat": lambda x: torch.cat((x, x)),
    "stack": lambda x: torch.stack((x, x)),
    "flip": lambda x: x.flip(0),
    "index": lambda x: x[x > 0],
    "index with nothing": lambda x: x[x.new_ones(0, dtype=torch.long)],
    "nonzero": torch.nonzero,
    "masked_fill": lambda x: x.masked_fill(x > 0, 3),
    "fill_": lambda x: x.fill_(3),
    "copy_": lambda x: x.copy_(torch.full_like(x, 4)),
    "clone": torch.clone,
    "there and back": lambda x: x.cpu().to(x.device),
    "to half": lambda x: x.half(),
    "tolist": lambda x: x.tolist(),
    "norm": lambda x: x.norm(),
    "std": lambda x: x.std(),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "unfold": lambda x: x.unfold(0, 1, 1),
    "foreach": lambda x: torch._foreach_add([x, x], 1),
    "out": lambda x: torch.exp(x, out=x.new_empty(0)),
    "sum out": lambda x: torch.sum(x, 0, out=x.new_empty(0)),
    "resize_": lambda x: x.clone().resize_(0),
}
SHAPES = [(), (1,), (0,), (0, 3), (3, 0), (2, 0, 3), (1, 1)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.filterwarnings("ignore:std..")
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
def test_shape(shape: tuple[int, ...], dtype: torch.dtype, xpu: torch.device) -> None:
    x = torch.arange(1, 1 + torch.Size(shape).numel()).reshape(shape).to(dtype)
    for name, op in OPS.items():
        try:
            agree(op, x)
        except AssertionError as error:
            error.add_note(f"{name} of {dtype} {shape}")
            raise
        except (RuntimeError, IndexError):
            pass  # as on the CPU: agree has seen to that


def test_a_view_of_nothing_at_the_end_of_a_storage(xpu: torch.device) -> None:
    def call(x: torch.Tensor) -> object:
        x[8:].fill_(1)
        x[8:].copy_(x[:0])
        return x[8:].sum(), (x[8:] + 1).numel(), x[8:].storage_offset()

    agree(call, torch.arange(8.0))


def test_a_tensor_of_no_storage(xpu: torch.device) -> None:
    """One that `set_()` has emptied."""

    def call(x: torch.Tensor) -> object:
        y = x.clone()
        y.set_()
        return y, y + 1, y.sum(), y.clone()

    agree(call, torch.ones(3))
