"""Tensors made of numbers alone, and rows that only other ops call."""

from collections.abc import Callable

import pytest
import torch

from kernels.kernel_forced import forced
from xpurt.testing.oracle import agree

MADE: dict[str, list[Callable[[str], torch.Tensor]]] = {
    "arange": [
        lambda device: torch.arange(7, device=device),
        lambda device: torch.arange(5, -3, -2, device=device, dtype=torch.int16),
        lambda device: torch.arange(0.5, 3, 0.25, device=device),
        lambda device: torch.arange(0, 1, 0.1, device=device, dtype=torch.bfloat16),
    ],
    "eye": [
        lambda device: torch.eye(3, device=device),
        lambda device: torch.eye(2, 5, device=device, dtype=torch.bool),
    ],
    "linspace": [
        lambda device: torch.linspace(-1, 4, 11, device=device),
        lambda device: torch.linspace(3, 5, 1, device=device),
        lambda device: torch.linspace(1, 0, 4, device=device, dtype=torch.float16),
    ],
    "logspace": [lambda device: torch.logspace(0, 3, 6, base=2, device=device)],
    "range": [lambda device: torch.range(1, 4, 0.5, device=device)],
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_made_of_numbers(name: str, xpu: torch.device) -> None:
    for make in MADE[name]:
        with forced(f"aten::{name}"):
            made = make("xpu")
        torch.testing.assert_close(made.cpu(), make("cpu"))


def test_out_of_another_layout(xpu: torch.device) -> None:
    out = torch.zeros(4, 6, device=xpu)[:, ::2].t()
    with forced("aten::eye"):
        torch.eye(3, 4, out=out)
    assert torch.equal(out.cpu(), torch.eye(3, 4))


def test_stack_by_its_inner_op(xpu: torch.device) -> None:
    x = torch.arange(6.0).view(2, 3)
    with forced("aten::_stack"):
        agree(torch.ops.aten._stack.default, [x, -x], 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_addbmm(dtype: torch.dtype, xpu: torch.device) -> None:
    """In narrow types the CPU rounds after each batch, and is no reference."""
    x, batch = torch.ones(2, 4).to(dtype), torch.arange(24).view(3, 2, 4).to(dtype)
    with forced("aten::addbmm"):
        agree(torch.addbmm, x, batch[:, :, :3], batch[:, :1].expand(3, 3, 4), beta=2)


def test_unique_of_the_older_op(xpu: torch.device) -> None:
    x = torch.tensor([[3, 1], [1, -2]])
    with forced("aten::_unique"):
        agree(torch.ops.aten._unique.default, x, True, True)


@pytest.mark.parametrize("p", [0, 1, 2, 3.5, float("inf")])
def test_norm(p: float, xpu: torch.device) -> None:
    x = torch.arange(-5.0, 7).view(3, 4)
    with forced("aten::norm"):
        agree(torch.ops.aten.norm.ScalarOpt_dim, x, p, [1], True)


def test_unique_of_all_elements(xpu: torch.device) -> None:
    x = torch.randint(0, 5, (4, 6))
    with forced("aten::_unique2"):
        agree(torch.unique, x, return_inverse=True, return_counts=True)
