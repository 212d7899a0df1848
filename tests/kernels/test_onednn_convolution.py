"""Convolutions and their gradients: by oneDNN where it knows the device."""

from dataclasses import dataclass

import pytest
import torch
from cpu_types import has_bf16
from torch import Tensor
from torch.nn import functional as F

from kernels.kernel_forced import check_on_queue, tiers_of
from kernels.kernel_tolerance import assert_near
from xpurt import _C, kernel_policy, prefer

FORWARD = "aten::convolution_overrideable"
BACKWARD = "aten::convolution_backward_overrideable"


@dataclass(frozen=True)
class Case:
    image: tuple[int, ...]  # sizes of the input
    channels: int  # of the output
    kernel: tuple[int, ...]
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    groups: int = 1
    transposed: bool = False
    output_padding: int = 0
    bias: bool = True

    def __str__(self) -> str:
        kind = "transposed" if self.transposed else "straight"
        return f"{kind}-{len(self.kernel)}d-{self.image}-{self.kernel}-g{self.groups}"

    def operands(self, dtype: torch.dtype) -> list[Tensor]:
        generator = torch.Generator().manual_seed(len(self.image))
        channels = self.image[1]
        outer = (
            (channels, self.channels // self.groups)
            if self.transposed
            else (self.channels, channels // self.groups)
        )
        shapes: list[tuple[int, ...]] = [self.image, (*outer, *self.kernel)]
        if self.bias:
            shapes.append((self.channels,))
        return [
            torch.rand(shape, generator=generator).sub(0.5).to(dtype)
            for shape in shapes
        ]

    def __call__(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        axes = len(self.kernel)
        if self.transposed:
            function = getattr(F, f"conv_transpose{axes}d")
            return function(
                x,
                weight,
                bias,
                self.stride,
                self.padding,
                self.output_padding,
                self.groups,
                self.dilation,
            )
        function = getattr(F, f"conv{axes}d")
        return function(
            x, weight, bias, self.stride, self.padding, self.dilation, self.groups
        )


CASES = [
    Case((2, 6, 11), 8, (3,), stride=2, padding=1),
    Case((2, 6, 11), 8, (3,), dilation=2, groups=2, bias=False),
    Case((2, 3, 13, 12), 16, (7, 5), stride=2, padding=3),
    Case((3, 16, 9, 8), 24, (3, 3), padding=1, bias=False),
    Case((2, 16, 9, 8), 16, (3, 3), padding=1, groups=16),
    Case((2, 8, 9, 10), 12, (3, 2), padding=2, dilation=2, groups=4),
    Case((1, 32, 7, 7), 16, (1, 1), stride=2),
    Case((2, 4, 5, 6, 7), 6, (3, 2, 3), padding=1, groups=2),
    Case((2, 6, 11), 8, (3,), stride=2, padding=1, transposed=True, output_padding=1),
    Case((2, 8, 5, 6), 6, (3, 4), stride=2, padding=1, transposed=True),
    Case((2, 8, 5, 6), 12, (3, 3), dilation=2, groups=4, transposed=True, bias=False),
    Case((2, 4, 3, 4, 5), 6, (2, 3, 2), stride=2, transposed=True, groups=2),
]

# Windows of one element have no order of dimensions that could be kept.
WIDE = [c for c in CASES if len(c.kernel) > 1 and max(c.kernel) > 1]


def run(case: Case, operands: list[Tensor]) -> list[Tensor]:
    """The result, and the gradients of all operands."""
    leaves = [x.detach().requires_grad_() for x in operands]
    result = case(*leaves)
    weights = torch.linspace(-1, 1, result.numel()).reshape(result.shape)
    result.backward(weights.to(result))
    return [result.detach(), *(leaf.grad for leaf in leaves)]


def check(case: Case, host: list[Tensor], xpu: torch.device, factor: float) -> None:
    expected = run(case, host)
    _C.reset_op_report()
    with kernel_policy("sycl"):
        actual = run(case, [x.to(xpu) for x in host])
    # Without instructions for bfloat16 PyTorch's CPU kernel joins what it computed of
    # each group, in the default order of dimensions.
    ordered = case.groups == 1 or has_bf16() or host[0].dtype != torch.bfloat16
    for mine, theirs in zip(actual, expected, strict=True):
        assert_near(mine, theirs, factor, check_stride=ordered)
    check_on_queue(FORWARD, BACKWARD)


@pytest.mark.one_in(2)
@pytest.mark.beyond_cpu(dtype=[torch.float32])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64], ids=str
)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_results_and_gradients(
    case: Case, dtype: torch.dtype, xpu: torch.device
) -> None:
    check(case, case.operands(dtype), xpu, 20)


@pytest.mark.mappings("CPU", "AUTO")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_onednn_takes_them_on_a_cpu(case: Case, xpu: torch.device) -> None:
    x, *rest = (x.to(xpu).requires_grad_() for x in case.operands(torch.float32))
    _C.reset_op_report()
    with prefer("CPU"), kernel_policy("sycl"):
        case(x, *rest).sum().backward()
    assert tiers_of(FORWARD) == {"onednn"}
    assert tiers_of(BACKWARD) == {"onednn"}


@pytest.mark.beyond_cpu(case=[CASES[3]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", WIDE, ids=str)
def test_channels_last_stays(case: Case, dtype: torch.dtype, xpu: torch.device) -> None:
    last = (
        torch.channels_last if len(case.kernel) == 2 else torch.channels_last_3d
    )  # of 4 and 5 dimensions
    x, weight, *bias = case.operands(dtype)
    check(case, [x.to(memory_format=last), weight, *bias], xpu, 20)
    check(case, [x, weight.to(memory_format=last), *bias], xpu, 20)


def test_operands_with_gaps(xpu: torch.device) -> None:
    case = CASES[3]
    x, weight = (
        t.repeat_interleave(2, -1)[..., ::2] for t in case.operands(torch.float32)
    )
    expected = case(x, weight)
    with kernel_policy("sycl"):
        actual = case(
            x.contiguous().to(xpu).repeat_interleave(2, -1)[..., ::2],
            weight.to(xpu).mT.contiguous().mT,
        )
    assert_near(actual, expected, 20)


@pytest.mark.parametrize("wanted", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1)])
def test_some_of_the_gradients(wanted: tuple[int, int, int], xpu: torch.device) -> None:
    case = CASES[2]

    def gradients(device: torch.device | str) -> list[Tensor]:
        leaves = [
            x.to(device).requires_grad_(bool(want))
            for x, want in zip(case.operands(torch.float32), wanted, strict=True)
        ]
        case(*leaves).sum().backward()
        return [leaf.grad for leaf in leaves if leaf.grad is not None]

    expected = gradients("cpu")
    with kernel_policy("sycl"):
        actual = gradients(xpu)
    assert len(actual) == sum(wanted)
    for mine, theirs in zip(actual, expected, strict=True):
        assert_near(mine, theirs, 20)


@pytest.mark.parametrize("wrong", ["weight", "bias"])
def test_types_that_differ_are_refused_as_by_pytorch(
    wrong: str, xpu: torch.device
) -> None:
    x, weight, bias = CASES[2].operands(torch.float32)
    if wrong == "weight":
        weight = weight.bfloat16()
    else:
        bias = bias.bfloat16()
    with pytest.raises(RuntimeError) as expected:
        F.conv2d(x, weight, bias)
    with kernel_policy("sycl"), pytest.raises(RuntimeError) as actual:
        F.conv2d(x.to(xpu), weight.to(xpu), bias.to(xpu))
    assert str(actual.value) == str(expected.value)


def test_a_second_order_gradient(xpu: torch.device) -> None:
    case = CASES[3]

    def twice(operands: list[Tensor]) -> list[Tensor]:
        leaves = [x.detach().requires_grad_() for x in operands]
        result = case(*leaves).square().sum()
        grads = torch.autograd.grad(result, leaves, create_graph=True)
        sum(g.square().sum() for g in grads).backward()
        return [leaf.grad for leaf in leaves]

    host = case.operands(torch.float32)
    expected = twice(host)
    with kernel_policy("sycl"):
        actual = twice([x.to(xpu) for x in host])
    for mine, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-3, atol=1e-2)


def test_sums_of_a_transposed_convolution_are_within_rounding(
    xpu: torch.device,
) -> None:
    """Within the bound of a sum of 108 products in any order, against float64."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(1, 4, 5, 5, 5, generator=generator) * 18 - 9
    weight = torch.rand(4, 8, 3, 3, 3, generator=generator) * 18 - 9
    op = torch.nn.functional.conv_transpose3d
    exact = op(x.double(), weight.double())
    most = (
        108
        * torch.finfo(torch.float32).eps
        * op(x.abs().double(), weight.abs().double())
    )
    for memory_format in (torch.contiguous_format, torch.channels_last_3d):
        given = (each.to(memory_format=memory_format).to(xpu) for each in (x, weight))
        with kernel_policy("sycl"):
            found = op(*given).cpu().double()
        assert ((found - exact).abs() <= most).all()
