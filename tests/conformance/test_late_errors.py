"""An error that a kernel of the forward finds may be raised in the backward, by the wait
of a timed sample: it is the call's error, and not one of its gradient."""

from typing import Any

import pytest
import torch

import xpurt
from xpurt_tools.conformance.gradients import gradients
from xpurt_tools.conformance.layouts import OF_GRADIENTS, gradients_by_layout
from xpurt_tools.conformance.tiers import Tiers


class WrongIndex(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        grad.gather(0, torch.full_like(grad, 99).long())
        torch.xpu.synchronize()
        return grad


class NoBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        raise ValueError("no backward")


@pytest.fixture
def x(xpu: torch.device) -> torch.Tensor:
    return torch.ones(3, 4, device=xpu).requires_grad_()


def test_an_error_of_earlier_work_is_raised(x: torch.Tensor) -> None:
    with xpurt.kernel_policy("sycl"):
        with pytest.raises(IndexError, match="submitted earlier"):
            gradients([WrongIndex.apply(x)], [x], Tiers())
        with pytest.raises(IndexError, match="submitted earlier"):
            gradients_by_layout([WrongIndex.apply(x)], [x], Tiers(), OF_GRADIENTS)
        torch.xpu.synchronize()


def test_an_error_of_the_backward_is_compared(x: torch.Tensor) -> None:
    assert gradients([NoBackward.apply(x)], [x], Tiers()) == "raised ValueError"
