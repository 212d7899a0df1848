"""Ops that were computed in a type too wide or too narrow, or by a formula that loses
what the type could hold."""

import math

import pytest
import torch

from kernels.kernel_forced import on_queue
from xpurt import kernel_policy

HALVES = (torch.float16, torch.bfloat16)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_nextafter_steps_in_the_half_type(
    dtype: torch.dtype, xpu: torch.device
) -> None:
    a = torch.tensor([1.0, -1.0, 0.0, -0.0, math.inf], dtype=dtype)
    b = torch.full_like(a, 3.0)
    actual = on_queue("aten::nextafter", lambda: torch.nextafter(a.to(xpu), b.to(xpu)))
    assert torch.equal(actual.cpu(), torch.nextafter(a, b))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_small_results_of_logaddexp2(dtype: torch.dtype, xpu: torch.device) -> None:
    far = torch.tensor([-30.0, -100.0], dtype=dtype)
    zero = torch.zeros_like(far)
    actual = on_queue(
        "aten::logaddexp2", lambda: torch.logaddexp2(zero.to(xpu), far.to(xpu))
    )
    exact = torch.exp2(far) / math.log(2)
    torch.testing.assert_close(actual.cpu(), exact, rtol=1e-6, atol=0)


@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_roots_by_a_scalar_exponent(exponent: float, xpu: torch.device) -> None:
    """A number and a tensor of one element have two results of -inf, as on the CPU."""
    x = torch.tensor([-math.inf, -0.0, 0.0, 4.0, math.inf])
    moved = x.to(xpu)
    for given in (exponent, torch.tensor(exponent)):
        actual = on_queue("aten::pow", lambda e=given: torch.pow(moved, e)).cpu()
        expected = torch.pow(x, given)
        torch.testing.assert_close(actual, expected, equal_nan=True)
        zero = expected == 0
        assert torch.equal(actual.signbit()[zero], expected.signbit()[zero])


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16], ids=str)
def test_least_common_multiples_that_overflow(
    dtype: torch.dtype, xpu: torch.device
) -> None:
    a = torch.tensor([100, 127, 6], dtype=dtype) * (1 if dtype == torch.int8 else 250)
    b = torch.tensor([7, 126, 4], dtype=dtype)
    actual = on_queue("aten::lcm", lambda: torch.lcm(a.to(xpu), b.to(xpu)))
    assert torch.equal(actual.cpu(), torch.lcm(a, b))


def test_the_largest_unsigned_divisor(xpu: torch.device) -> None:
    """It is not -1."""
    a = torch.tensor([10, 254, 255], dtype=torch.uint8)
    for function in (torch.floor_divide, torch.remainder, torch.fmod):
        actual = on_queue(
            f"aten::{function.__name__}", lambda f=function: f(a.to(xpu), 255)
        )
        assert torch.equal(actual.cpu(), function(a, 255))


@pytest.mark.parametrize("policy", ["sycl", "native"])
@pytest.mark.parametrize("dtype", [*HALVES, torch.float32, torch.float64], ids=str)
def test_exponential_of_an_extreme_rate(
    policy: str, dtype: torch.dtype, xpu: torch.device
) -> None:
    with kernel_policy(policy):
        sample = torch.ones(64, dtype=dtype, device=xpu)
        assert not sample.exponential_(math.inf).any()
        assert sample.exponential_(1).min() > 0
        assert sample.exponential_(1e40).double().max() < 1e-38


def test_random_of_all_integers_in_float16(xpu: torch.device) -> None:
    for device in ("cpu", xpu):
        with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
            torch.empty(3, dtype=torch.float16, device=device).random_(-(2**63), None)


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize(
    "name", ["eq", "lt", "ge", "remainder", "fmod", "pow", "mul", "add"]
)
def test_a_scalar_beside_a_half(
    name: str, dtype: torch.dtype, xpu: torch.device
) -> None:
    function = getattr(torch, name)
    x = torch.tensor([0.1, 0.3, 1.0, 2.5, 100.0] * 16, dtype=dtype)
    actual = on_queue(f"aten::{name}", lambda: function(x.to(xpu), 0.1)).cpu()
    if name in ("eq", "lt", "ge"):
        assert torch.equal(actual, function(x, 0.1))
    else:
        torch.testing.assert_close(actual, function(x, 0.1), rtol=1e-2, atol=1e-3)
