"""A wrong index touches no foreign memory, and is raised at the next wait."""

from collections.abc import Callable

import pytest
import torch

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
}


@pytest.mark.parametrize("wrong", [5, -6, 2**40])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.beyond_cpu(op=["gather", "index_select"])
def test_a_wrong_index_is_raised_once(op: str, wrong: int, xpu: torch.device) -> None:
    x = torch.randn(5, 4).to(xpu)
    index = torch.tensor([1, wrong, 2]).to(xpu)
    torch.xpu.synchronize()
    with xpurt.kernel_policy("sycl"):
        OPS[op](x, index)
        with pytest.raises(IndexError, match="index out of range in aten::"):
            torch.xpu.synchronize()
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
