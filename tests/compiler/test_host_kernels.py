"""Code for the host that is xpu's own: what it computes, and that it is used."""

import pytest
import torch
from torch import Tensor
from torch._inductor import config
from torch.nn import functional as F

import xpurt
from xpurt.compiler import generated_code

pytestmark = pytest.mark.mappings("CPU")

SIZES = (1, 3, 7, 8, 9, 16, 17, 100)

has_avx2 = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX2",
    reason="without AVX2 alone the code is PyTorch's",
)


def selected(parts: list[Tensor], masks: list[Tensor]) -> list[Tensor]:
    """A mask is stored for each gradient, and loaded."""
    found = []
    for x, mask in zip(parts, masks, strict=True):
        y = F.relu(x)
        found += [torch.where(mask, y * 2, y - 1), (y > 0.5) & mask]
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_masks_of_all_lengths(xpu: torch.device, dtype: torch.dtype) -> None:
    parts = [torch.randn(n).to(dtype) for n in SIZES]
    masks = [torch.rand(n) > 0.5 for n in SIZES]
    compiled = torch.compile(selected)
    grads, results = [], []
    for device, function in ((torch.device("cpu"), selected), (xpu, compiled)):
        leaves = [each.to(device, copy=True).requires_grad_() for each in parts]
        made = function(leaves, [each.to(device) for each in masks])
        sum(
            (each.sum() for each in made[::2]), torch.zeros((), device=device)
        ).backward()
        results.append([each.cpu() for each in made])
        grads.append([each.grad.cpu() for each in leaves if each.grad is not None])
    assert all(torch.equal(*each) for each in zip(*results, strict=True))
    assert all(torch.equal(*each) for each in zip(*grads, strict=True))


def code_of(function: object, *arguments: Tensor) -> str:
    """Of the forward and the backward graph."""
    without_caches = config.patch(force_disable_caches=True)
    with (
        generated_code.keeping() as kept,
        xpurt.kernel_policy("native"),
        without_caches,
    ):
        result = torch.compile(function)(*arguments)  # type: ignore[call-overload]
        result.sum().backward()
    return "".join(each.source_code for each in kept)


@has_avx2
def test_only_code_of_xpu_has_conversions_of_masks(xpu: torch.device) -> None:
    x = torch.randn(64, requires_grad=True)
    assert "xpurt::store_mask" not in code_of(lambda x: F.relu(x) * 3, x)
    x = torch.randn(64, device=xpu, requires_grad=True)
    code = code_of(lambda x: F.relu(x) * 3, x)
    assert code.count("inline void store_mask") == 2


@pytest.mark.parametrize("window", [(2, 2, 0), (3, 2, 1)])
def test_gradients_of_max_pooling_are_those_of_eager_mode(
    xpu: torch.device, window: tuple[int, int, int]
) -> None:
    def pooled(x: Tensor) -> Tensor:
        return F.max_pool2d(F.relu(x), *window)

    x = torch.randn(2, 3, 9, 10)
    expected = x.clone().requires_grad_()
    pooled(expected).sum().backward()
    found = x.to(xpu).requires_grad_()
    code = code_of(pooled, found)
    assert expected.grad is not None
    assert found.grad is not None
    assert torch.equal(found.grad.cpu(), expected.grad)
    assert "aten.max_pool2d_with_indices_backward" in code
    stock = x.clone().requires_grad_()
    assert "aten.max_pool2d_with_indices_backward" not in code_of(pooled, stock)
