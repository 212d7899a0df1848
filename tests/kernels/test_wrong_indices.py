"""A wrong index touches no foreign memory, and is raised at the next wait."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import xpurt

Op = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

OPS: dict[str, Op] = {
    "gather": lambda x, index: x.gather(0, index.unsqueeze(1)),
    "index_select": lambda x, index: x.index_select(0, index),
    "index": lambda x, index: x[index],
    "take": lambda x, index: x.take(index * x.shape[1]),
    "scatter": lambda x, index: x.scatter(0, index.unsqueeze(1), 1.0),
    "index_add": lambda x, index: x.index_add(0, index, torch.ones_like(x)[:3]),
    "index_put": lambda x, index: x.index_put((index,), x.new_ones(()), True),
    "put": lambda x, index: x.put(index * x.shape[1], x.new_ones(3)),
    "embedding_bag": lambda x, index: F.embedding_bag(index.view(1, 3), x, mode="sum"),
    "embedding_dense_backward": lambda x, index: (
        torch.ops.aten.embedding_dense_backward(x[:3], index, 5, -1, False)
    ),
    "searchsorted": lambda x, index: torch.searchsorted(
        x[:3, 0].contiguous(), x, sorter=torch.where(index == 5, 3, index)
    ),
    "max_unpool": lambda x, index: F.max_unpool2d(
        x[:3, 0].view(1, 1, 3), index.view(1, 1, 3), (1, 2), output_size=(1, 5)
    ),
    # These have five classes.
    "nll_loss": lambda x, index: F.nll_loss(x.t()[:3], index),
    "multi_margin_loss": lambda x, index: F.multi_margin_loss(x.t()[:3], index),
    "ctc_loss": lambda x, index: F.ctc_loss(
        x.t().unsqueeze(1).log_softmax(-1), index.view(1, 3), [4], [3]
    ),
}
# The errors of PyTorch's CPU ops, if not that of an index.
ERRORS = {
    "embedding_bag": "Expected idx >= 0",
    "max_unpool": "Found an invalid max index",
    "ctc_loss": "Expected labels >= 0",
}


@pytest.mark.parametrize("wrong", [5, -6, 2**40])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.beyond_cpu(op=["gather", "index_select"])
def test_a_wrong_index_is_raised_once(op: str, wrong: int, xpu: torch.device) -> None:
    x = torch.randn(5, 4).to(xpu)
    index = torch.tensor([1, wrong, 2]).to(xpu)
    torch.xpu.synchronize()

    def call_and_wait() -> None:
        OPS[op](x, index)
        torch.xpu.synchronize()

    with xpurt.kernel_policy("sycl"):
        said = ERRORS.get(op, "index out of range in ")
        with pytest.raises((IndexError, RuntimeError), match=said):
            call_and_wait()
        torch.xpu.synchronize()
        right = OPS[op](x, torch.tensor([1, 0, 2]).to(xpu))
    assert right.isfinite().all()


def test_what_a_wrong_index_does_not_name_is_written(xpu: torch.device) -> None:
    x = torch.zeros(4).to(xpu)
    with xpurt.kernel_policy("sycl"):
        x.index_add_(0, torch.tensor([1, 9, 1]).to(xpu), torch.ones(3).to(xpu))
        with pytest.raises(IndexError):
            torch.xpu.synchronize()
    assert x.tolist() == [0, 2, 0, 0]
