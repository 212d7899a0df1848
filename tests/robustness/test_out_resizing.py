"""out= of another shape: resized as on the CPU, with the CPU's warnings and errors."""

import warnings
from collections.abc import Callable

import pytest
import torch

from xpurt.testing.oracle import agree

pytestmark = pytest.mark.usefixtures("policy")

Call = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
CALLS: dict[str, Call] = {
    "add": lambda x, out: torch.add(x, x, out=out),
    "exp": lambda x, out: torch.exp(x, out=out),
    "where": lambda x, out: torch.where(x > 0.5, x, -x, out=out),
    "sum": lambda x, out: torch.sum(x, 0, out=out),
    "amax": lambda x, out: torch.amax(x, 1, out=out),
    "mean": lambda x, out: torch.mean(x, 0, keepdim=True, out=out),
    "softmax": lambda x, out: torch.softmax(x, 1, out=out),
    "mm": lambda x, out: torch.mm(x, x.t(), out=out),
    "addmm": lambda x, out: torch.addmm(x[:, :1], x, x.t(), out=out),
    "cat": lambda x, out: torch.cat((x, x), out=out),
    "cumsum": lambda x, out: torch.cumsum(x, 0, out=out),
    "index_select": lambda x, out: torch.index_select(
        x, 0, torch.tensor([2, 0], device=x.device), out=out
    ),
}
OUTS: dict[str, Callable[[], torch.Tensor]] = {
    "empty": lambda: torch.empty(0),
    "empty, two dimensions": lambda: torch.empty(0, 7),
    "too large": lambda: torch.zeros(100),
    "too small": lambda: torch.zeros(2),
    "transposed": lambda: torch.zeros(5, 2).t(),
    "nothing of a storage": lambda: torch.full((30,), 7.0)[:0],
    "double": lambda: torch.empty(0, dtype=torch.float64),
    "int64": lambda: torch.empty(0, dtype=torch.int64),
    "expanded": lambda: torch.zeros(1).expand(6),
}


def both(call: Call, x: torch.Tensor, out: torch.Tensor) -> tuple[object, ...]:
    """The result, and the elements that its storage has room for."""
    result = call(x, out)
    storage = result.untyped_storage()
    assert result.data_ptr() == out.data_ptr()
    return result, storage.nbytes() // out.element_size()


@pytest.mark.parametrize("out", OUTS)
@pytest.mark.parametrize("call", CALLS)
def test_out(call: str, out: str, xpu: torch.device) -> None:
    heard = []

    def called(x: torch.Tensor, given: torch.Tensor) -> object:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                return both(CALLS[call], x, given)
            finally:
                heard.append(["was resized" in str(w.message) for w in caught])

    try:
        agree(called, torch.rand(3, 4), OUTS[out]())
    except (RuntimeError, TypeError):
        return  # the CPU raised it, too
    assert heard[0] == heard[1]
