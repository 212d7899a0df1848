"""Tensors of inference mode, and the border between it and autograd."""

from collections.abc import Callable

import pytest
import torch

from xpurt.testing.oracle import agree

pytestmark = pytest.mark.usefixtures("policy")


def made_inside(x: torch.Tensor) -> object:
    with torch.inference_mode():
        made = x * 2
        view = made.t()[1:]
        view.add_(1)
        torch.exp(x, out=made[:1])
    assert made.is_inference()
    assert view.is_inference()
    return made.sum().item(), (made + x.detach()).tolist(), view.clone().is_inference()


def changed_outside(x: torch.Tensor) -> object:
    with torch.inference_mode():
        made = x * 2
    return made.add_(1)


def saved_for_backward(x: torch.Tensor) -> object:
    with torch.inference_mode():
        made = x * 2
    return made * x.clone().requires_grad_()


def a_version(x: torch.Tensor) -> object:
    with torch.inference_mode():
        return (x + 1)._version


def a_normal_tensor_changed_inside(x: torch.Tensor) -> object:
    y = x.clone()
    with torch.inference_mode():
        y.add_(1)
        y[0].mul_(2)
        inside = y.view(-1)
    return y, y.is_inference(), inside.is_inference(), y._version


def a_leaf_inside(x: torch.Tensor) -> object:
    leaf = x.clone().requires_grad_()
    with torch.inference_mode():
        result = leaf @ leaf.t()
    return result.requires_grad, result.sum().item()


def no_grad_and_back(x: torch.Tensor) -> object:
    leaf = x.clone().requires_grad_()
    with torch.inference_mode(), torch.inference_mode(False):
        return torch.autograd.grad((leaf * leaf).sum(), leaf)


Use = Callable[[torch.Tensor], object]
USES: list[Use] = [
    made_inside,
    a_normal_tensor_changed_inside,
    a_leaf_inside,
    no_grad_and_back,
]
ERRORS: dict[Use, str] = {
    changed_outside: "Inplace update to inference tensor",
    saved_for_backward: "Inference tensors cannot be saved for backward",
    a_version: "Inference tensors do not track version counter",
}


@pytest.mark.parametrize("use", USES)
def test_use(use: Use, xpu: torch.device) -> None:
    agree(use, torch.rand(3, 4))


@pytest.mark.parametrize("use", ERRORS)
def test_error(use: Use, xpu: torch.device) -> None:
    with pytest.raises(RuntimeError, match=ERRORS[use]):
        agree(use, torch.rand(3, 4))
