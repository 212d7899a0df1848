"""Means of windows: by oneDNN on a CPU, where it counts as PyTorch does."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from kernels.kernel_forced import tiers_of
from kernels.kernel_tolerance import assert_near
from xpurt import _C, kernel_policy, prefer


@dataclass(frozen=True)
class Case:
    sizes: tuple[int, ...]
    kernel: int | tuple[int, ...]
    stride: int | None = None
    padding: int = 0
    ceil: bool = False
    counts_padding: bool = True
    divisor: int | None = None
    last: bool = False
    axes: int = 2
    onednn: bool = True

    def operand(self, dtype: torch.dtype) -> Tensor:
        generator = torch.Generator().manual_seed(len(self.sizes))
        x = torch.randn(self.sizes, generator=generator).to(dtype)
        if self.last:
            formats = {4: torch.channels_last, 5: torch.channels_last_3d}
            x = x.contiguous(memory_format=formats[len(self.sizes)])
        return x

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The means, and the gradient."""
        leaf = x.detach().requires_grad_()
        function = F.avg_pool2d if self.axes == 2 else F.avg_pool3d
        means = function(
            leaf,
            self.kernel,
            self.stride,
            self.padding,
            self.ceil,
            self.counts_padding,
            self.divisor,
        )
        weights = torch.linspace(-1, 2, means.numel()).reshape(means.shape).to(means)
        return means.detach(), torch.autograd.grad(means, leaf, weights)[0]

    def op(self) -> str:
        return f"aten::avg_pool{self.axes}d"


CASES = [
    Case((2, 3, 9, 8), 2),
    Case((2, 3, 9, 8), (3, 2), stride=1),
    Case((3, 9, 8), 3, padding=1),
    Case((2, 16, 9, 8), 3, stride=2, padding=1, last=True),
    Case((2, 5, 9, 8), 3, stride=2, padding=1, last=True),
    Case((2, 5, 9, 8), 3, stride=2, padding=1, counts_padding=False, last=True),
    Case((2, 3, 9, 8), 3, stride=2, padding=1, counts_padding=False),
    Case((2, 3, 10, 8), 3, stride=2, ceil=True, counts_padding=False),
    Case((2, 8, 10, 8), 3, stride=2, ceil=True, counts_padding=False, last=True),
    Case((2, 3, 9, 7), 3, stride=2, ceil=True),
    Case((2, 3, 10, 8), 3, stride=2, ceil=True, onednn=False),
    Case((2, 3, 10, 8), 3, stride=2, padding=1, ceil=True, last=True, onednn=False),
    Case((2, 3, 9, 8), 2, divisor=3, onednn=False),
    Case((2, 8, 4, 4), 4, last=True),
    Case((1, 1, 6, 6), 2, last=True),
    Case((2, 3, 6, 7, 8), 2, padding=1, axes=3),
    Case((2, 8, 6, 7, 8), (2, 3, 2), axes=3, last=True),
    Case((3, 6, 7, 8), 3, stride=2, padding=1, counts_padding=False, axes=3),
]


@pytest.mark.one_in(2)
@pytest.mark.beyond_cpu(dtype=[torch.float32])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_means(case: Case, dtype: torch.dtype, xpu: torch.device) -> None:
    expected = case(case.operand(dtype))
    with kernel_policy("sycl"):
        actual = case(case.operand(dtype).to(xpu))
    for mine, theirs in zip(actual, expected, strict=True):
        assert_near(mine, theirs)


@pytest.mark.mappings("CPU", "AUTO")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_onednn_takes_them_where_it_counts_alike(case: Case, xpu: torch.device) -> None:
    x = case.operand(torch.float32).to(xpu)
    _C.reset_op_report()
    with prefer("CPU"), kernel_policy("sycl"):
        case(x)
    wanted = {"onednn" if case.onednn else "sycl"}
    assert tiers_of(case.op()) == wanted
    assert tiers_of(f"{case.op()}_backward") == wanted


@pytest.mark.mappings("CPU")
def test_numbers_that_are_none(xpu: torch.device) -> None:
    case = Case((2, 16, 9, 8), 3, stride=2, padding=1, last=True)
    for last in (False, True):
        x = case.operand(torch.float32)
        x = x if last else x.contiguous()
        x[0, 0, 3, 3], x[0, 1, 4, 4] = torch.nan, torch.inf
        expected = case(x)
        with kernel_policy("sycl"):
            actual = case(x.to(xpu))
        for mine, theirs in zip(actual, expected, strict=True):
            assert_near(mine, theirs)


@pytest.mark.mappings("CPU")
def test_a_gradient_that_is_one_number(xpu: torch.device) -> None:
    for format_ in (torch.contiguous_format, torch.channels_last):
        x = torch.rand(2, 8, 6, 6).contiguous(memory_format=format_)
        on_host, on_xpu = x.clone().requires_grad_(), x.to(xpu).requires_grad_()
        F.avg_pool2d(on_host, 2).sum().backward()
        with kernel_policy("sycl"):
            F.avg_pool2d(on_xpu, 2).sum().backward()
        assert_near(on_xpu.grad, on_host.grad)


@pytest.mark.mappings("CPU")
def test_the_largest_of_nan_is_nan(xpu: torch.device) -> None:
    """Why oneDNN has no part in that."""
    x = torch.rand(2, 8, 6, 6)
    x[0, 0, 2, 2] = torch.nan
    _C.reset_op_report()
    with kernel_policy("sycl"):
        actual = F.max_pool2d(x.to(xpu), 2)
    assert_near(actual, F.max_pool2d(x, 2))
    assert tiers_of("aten::max_pool2d_with_indices") == {"sycl"}
