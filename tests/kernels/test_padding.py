"""Padding at the borders, and its gradients, in one to three dimensions."""

import pytest
import torch

import xpurt
from kernels.kernel_forced import forced, tiers_of
from xpurt.testing.oracle import agree

PADDINGS = {1: (2, 1), 2: (1, 2, 0, 3), 3: (1, 0, 2, 1, 1, 2)}
CROPPING = {1: (3, -2), 2: (-1, 2, 0, -1), 3: (1, -1, 2, 1, 0, 2)}


def sample(dims: int) -> torch.Tensor:
    shape = (2, 3, 5, 4, 6)[: dims + 2]
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=generator, requires_grad=True)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("dims", PADDINGS)
def test_padding_and_its_gradient(mode: str, dims: int, xpu: torch.device) -> None:
    name = {"reflect": "reflection", "replicate": "replication"}[mode]
    pad = torch.nn.functional.pad
    with forced(f"aten::{name}_pad{dims}d"):
        agree(pad, sample(dims), PADDINGS[dims], mode)
        batchless = sample(dims)[0].detach().requires_grad_()
        agree(pad, batchless, PADDINGS[dims], mode)
        if mode == "replicate":
            agree(pad, sample(dims), CROPPING[dims], mode)
        torch.xpu.synchronize()
        assert tiers_of(f"aten::{name}_pad{dims}d_backward") == {"sycl"}


def test_padding_of_integers(xpu: torch.device) -> None:
    x = torch.arange(12).view(1, 3, 4)
    with xpurt.kernel_policy("sycl"):
        agree(torch.nn.functional.pad, x, (2, 2), "reflect")
