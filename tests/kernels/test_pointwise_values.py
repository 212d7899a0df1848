"""Values at the edges, types that mix, and what a kernel has to decline."""

from collections.abc import Callable
from functools import partial

import pytest
import torch

from kernels.kernel_forced import forced, on_queue
from kernels.kernel_tolerance import assert_near
from xpurt import kernel_policy

INF = float("inf")
NAN = float("nan")
SPECIAL = torch.tensor(
    [
        NAN,
        INF,
        -INF,
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.5,
        -2.5,
        3.5,
        1e30,
        -1e30,
        1e-40,
    ]
)

UNARY = [
    "abs", "ceil", "exp", "floor", "isfinite", "isinf", "isnan", "isposinf", "isneginf",
    "log", "log1p", "neg", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "sign",
    "signbit", "sqrt", "tanh", "trunc", "nan_to_num", "frac", "logical_not", "erf",
]  # fmt: skip
BINARY = [
    "add", "sub", "mul", "div", "maximum", "minimum", "fmax", "fmin", "eq", "ne", "lt",
    "ge", "atan2", "copysign", "fmod", "remainder", "floor_divide", "hypot", "xlogy",
    "logaddexp", "logical_and", "logical_or", "pow", "heaviside",
]  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_special_values(name: str, xpu: torch.device) -> None:
    function = getattr(torch, name)
    with kernel_policy("sycl"):
        actual = function(SPECIAL.to(xpu))
    assert_near(actual, function(SPECIAL))
    if actual.dtype.is_floating_point:
        zero = actual.cpu() == 0
        same_sign = torch.signbit(actual.cpu()) == torch.signbit(function(SPECIAL))
        assert same_sign[zero].all(), "the sign of a zero is lost"


@pytest.mark.parametrize("name", BINARY)
def test_pairs_of_special_values(name: str, xpu: torch.device) -> None:
    function = getattr(torch, name)
    a = SPECIAL[:, None].expand(-1, len(SPECIAL)).contiguous()
    b = SPECIAL[None, :].expand(len(SPECIAL), -1).contiguous()
    if name in ("fmod", "remainder"):
        # PyTorch's vectorized kernel gives NaN for a divisor below the normal numbers.
        a, b = a[:, :-1].contiguous(), b[:, :-1].contiguous()
    actual = on_queue(f"aten::{name}", lambda: function(a.to(xpu), b.to(xpu)))
    assert_near(actual, function(a, b))


@pytest.mark.parametrize(
    "function",
    [
        torch.nn.functional.gelu,
        torch.nn.functional.silu,
        torch.nn.functional.elu,
        torch.nn.functional.softplus,
        torch.nn.functional.hardswish,
        torch.nn.functional.hardsigmoid,
        torch.nn.functional.hardtanh,
        torch.nn.functional.leaky_relu,
        torch.nn.functional.softshrink,
        torch.nn.functional.hardshrink,
        torch.nn.functional.mish,
    ],
)
def test_activations_of_special_values(
    function: Callable[[torch.Tensor], torch.Tensor], xpu: torch.device
) -> None:
    # PyTorch's kernel of GELU gives NaN for infinity.
    values = SPECIAL[3:] if function is torch.nn.functional.gelu else SPECIAL
    with kernel_policy("sycl"):
        actual = function(values.to(xpu))
    assert_near(actual, function(values))


@pytest.mark.beyond_cpu(dtype=[torch.int8, torch.int64])
@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_the_smallest_integer(dtype: torch.dtype, xpu: torch.device) -> None:
    info = torch.iinfo(dtype)
    a = torch.tensor([info.min, info.max, info.min, -7, 7, -7], dtype=dtype)
    b = torch.tensor([1, -1, 2, 2, -2, -2], dtype=dtype)
    for name in ("add", "sub", "mul", "maximum"):
        function = getattr(torch, name)
        actual = on_queue(f"aten::{name}", lambda f=function: f(a.to(xpu), b.to(xpu)))
        assert_near(actual, function(a, b))
    for name in ("remainder", "fmod", "floor_divide"):
        function = getattr(torch, name)
        for divisor in set(b.tolist()):
            actual = on_queue(
                f"aten::{name}", lambda f=function, d=divisor: f(a.to(xpu), d)
            )
            assert_near(actual, function(a, divisor))
    for name in ("abs", "neg", "bitwise_not", "sign"):
        function = getattr(torch, name)
        actual = on_queue(f"aten::{name}", lambda f=function: f(a.to(xpu)))
        assert_near(actual, function(a))


@pytest.mark.one_in(2)
@pytest.mark.beyond_cpu(dtype=[torch.uint8, torch.int64])
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_shift_amounts(dtype: torch.dtype, xpu: torch.device) -> None:
    bits = torch.iinfo(dtype).bits
    amounts = [0, 1, bits - 2, bits - 1, bits, bits + 1]
    if dtype != torch.uint8:
        amounts.append(-1)
    numbers = [1, 5, 100, 0] if dtype == torch.uint8 else [1, -1, 100, -100]
    a = torch.tensor(numbers, dtype=dtype)[:, None]
    b = torch.tensor(amounts, dtype=dtype)[None, :]
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        function = getattr(torch, name)
        actual = on_queue(f"aten::{name}", lambda f=function: f(a.to(xpu), b.to(xpu)))
        assert_near(actual, function(a, b))
    whole = a.expand(len(numbers), len(amounts)).contiguous()
    for name in ("__lshift__", "__rshift__", "__ilshift__", "__irshift__"):
        function = getattr(torch.Tensor, name)
        for amount in (b, 1):
            moved = amount.to(xpu) if isinstance(amount, torch.Tensor) else amount
            actual = on_queue(
                f"aten::{name}", lambda f=function, m=moved: f(whole.to(xpu), m)
            )
            assert_near(actual, function(whole.clone(), amount))


@pytest.mark.parametrize("rounding", ["trunc", "floor"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32])
def test_rounded_division(rounding: str, dtype: torch.dtype, xpu: torch.device) -> None:
    a = torch.tensor([7, -7, 7, -7, 0, 5, 1], dtype=dtype)
    b = torch.tensor([2, 2, -2, -2, 3, 5, 10], dtype=dtype)
    divisors: list[torch.Tensor | int] = [2, -2, 10]
    if dtype.is_floating_point:
        a, b = a / 10, b / 10
        divisors.append(b)

    def divide(x: torch.Tensor, y: torch.Tensor | int) -> torch.Tensor:
        return torch.div(x, y, rounding_mode=rounding)

    for each in divisors:
        moved = each.to(xpu) if isinstance(each, torch.Tensor) else each
        actual = on_queue("aten::div", lambda d=moved: divide(a.to(xpu), d))
        assert_near(actual, divide(a, each))


@pytest.mark.filterwarnings("ignore:.* has no kernel on xpu")
@pytest.mark.parametrize(
    "divide",
    [
        torch.floor_divide,
        torch.remainder,
        torch.fmod,
        partial(torch.div, rounding_mode="trunc"),
    ],
    ids=["floor_divide", "remainder", "fmod", "div"],
)
def test_an_integral_division_by_zero_is_an_error(
    divide: Callable[..., torch.Tensor], xpu: torch.device
) -> None:
    a = torch.tensor([1, 2, 3], dtype=torch.int32)
    b = torch.tensor([1, 0, -2], dtype=torch.int32)
    with kernel_policy("sycl"):
        for divisor in (b.to(xpu), b.to(xpu)[1], b[1], 0):
            with pytest.raises(RuntimeError, match=r"(?i)zerodivision"):
                divide(a.to(xpu), divisor)
        assert_near(divide(a.to(xpu), b.to(xpu) + 3), divide(a, b + 3))


TYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16,
    torch.bfloat16, torch.float32, torch.float64,
]  # fmt: skip


# Each pair of types takes kernels of its own, and each pair is there in two orders.
@pytest.mark.one_in(4)
@pytest.mark.beyond_cpu(left=[torch.bfloat16])
@pytest.mark.parametrize(
    "left",
    [
        pytest.param(each, marks=[pytest.mark.slow] if place % 2 else [])
        for place, each in enumerate(TYPES)
    ],
    ids=str,
)
def test_types_are_promoted_as_by_pytorch(left: torch.dtype, xpu: torch.device) -> None:
    a = torch.tensor([0, 1, 1, 0, 1]).to(left)
    for right in TYPES:
        b = torch.tensor([1, 1, 0, 1, 1]).to(right)
        for function in (torch.add, torch.div, torch.lt):
            name = f"aten::{function.__name__}"
            actual = on_queue(name, lambda f=function, b=b: f(a.to(xpu), b.to(xpu)))
            assert_near(actual, function(a, b))
    for scalar in (True, 2, 2.5):
        for function in (torch.add, torch.mul, torch.gt):
            name = f"aten::{function.__name__}"
            actual = on_queue(name, lambda f=function, s=scalar: f(a.to(xpu), s))
            assert_near(actual, function(a, scalar))


@pytest.mark.mappings("CPU", "explicit", "GPU", "AUTO")
def test_a_zero_dim_cpu_tensor_is_an_operand(xpu: torch.device) -> None:
    a = torch.arange(5, dtype=torch.float32)
    b = torch.tensor(2.5, dtype=torch.float64)
    actual = on_queue("aten::add", lambda: a.to(xpu) + b)
    assert_near(actual, a + b)


@pytest.mark.parametrize(
    "bounds", [(None, 1.0), (-1.0, None), (-1.0, 1.0), (1.0, -1.0)]
)
def test_clamp_with_one_bound(
    bounds: tuple[float | None, float | None], xpu: torch.device
) -> None:
    low, high = bounds
    actual = on_queue("aten::clamp", lambda: SPECIAL.to(xpu).clamp(low, high))
    assert_near(actual, SPECIAL.clamp(low, high))


@pytest.mark.one_in(2)
@pytest.mark.beyond_cpu(source=[torch.int32, torch.bfloat16])
@pytest.mark.parametrize("source", TYPES, ids=str)
def test_copy_converts_every_type(source: torch.dtype, xpu: torch.device) -> None:
    values = torch.tensor([0.0, 1.0, -1.0, 2.75, -2.75, 100.0, 0.25]).to(source)
    for target in TYPES:
        expected = torch.zeros(2, 7, dtype=target)
        actual = expected.to(xpu)
        expected.t().copy_(values[:, None])
        moved = values.to(xpu)
        with forced("aten::copy_"):
            actual.t().copy_(moved[:, None])
        assert_near(actual, expected)


def test_fill_and_zero(xpu: torch.device) -> None:
    for dtype in TYPES:
        expected = torch.ones(3, 5, dtype=dtype)
        actual = expected.to(xpu)
        with forced("aten::fill_"):
            actual[:, 1:3].fill_(3)
        expected[:, 1:3].fill_(3)
        with forced("aten::zero_"):
            actual[1].zero_()
        expected[1].zero_()
        assert_near(actual, expected)


def test_overlapping_outputs_are_refused(xpu: torch.device) -> None:
    a = torch.zeros(1, device=xpu).expand(4)
    with (
        kernel_policy("sycl"),
        pytest.raises(RuntimeError, match="single memory location"),
    ):
        a.add_(1)


def test_an_in_place_result_must_fit(xpu: torch.device) -> None:
    a = torch.zeros(3, device=xpu)
    with kernel_policy("sycl"), pytest.raises(RuntimeError, match="broadcast shape"):
        a.add_(torch.zeros(2, 3, device=xpu))
    with kernel_policy("sycl"), pytest.raises(RuntimeError, match="can't be cast"):
        torch.zeros(3, dtype=torch.int32, device=xpu).add_(1.5)


@pytest.mark.mappings("CPU", "explicit", "GPU", "AUTO")
def test_kernels_follow_each_other_in_order(xpu: torch.device) -> None:
    """SYCL kernels and native ones alternate on the same bytes."""
    expected = torch.arange(1000, dtype=torch.float32)
    actual = expected.to(xpu)
    for step in range(20):
        with kernel_policy("sycl" if step % 3 else "native"):
            actual = actual.add_(1).mul(1.01)
        expected = expected.add_(1).mul(1.01)
    assert_near(actual, expected)
