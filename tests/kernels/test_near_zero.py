"""Functions with formulas of xpurt's own for floats, where their zeros are."""

import math
from collections.abc import Callable

import mpmath
import pytest
import torch

from kernels.kernel_forced import on_queue

Exact = Callable[[mpmath.mpf], mpmath.mpf]
Function = tuple[Callable[[torch.Tensor], torch.Tensor], float, Exact]
FUNCTIONS: dict[str, Function] = {
    "expm1": (torch.expm1, 0.0, mpmath.expm1),
    "log1p": (torch.log1p, 0.0, mpmath.log1p),
    "tanh": (torch.tanh, 0.0, mpmath.tanh),
    "erf": (torch.erf, 0.0, mpmath.erf),
    "lgamma": (torch.lgamma, 2.0, lambda x: mpmath.log(abs(mpmath.gamma(x)))),
}
EDGES = (
    *(0.0, -0.0, 1e-40, -1e-40, 1.0, -1.0, 2.0, -2.0, -2.5, 3e38, -3e38),
    *(float("inf"), float("-inf"), float("nan"), 88.7, 88.72283, 89.5, -17.5, -110.0),
    *(0.99999994, 1.0000001, 1.5, -1.5),
)


def around(zero: float) -> torch.Tensor:
    """Numbers at all distances from a zero on both sides, within the domain."""
    far = torch.logspace(-7 if zero else -9, math.log10(0.9), 150)
    beyond = torch.cat([torch.linspace(0.5, 4, 150), torch.linspace(-0.99, 80, 150)])
    found = torch.cat([zero + far, zero - far, beyond])
    return found[found != zero]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_last_places(name: str, xpu: torch.device) -> None:
    """As near as PyTorch's CPU kernels, which have up to one unit in the last place, or
    the half of one more."""
    function, zero, exact = FUNCTIONS[name]
    given = around(zero)
    actual = on_queue(f"aten::{name}", lambda: function(given.to(xpu)))
    for x, y in zip(given.tolist(), actual.tolist(), strict=True):
        with mpmath.workdps(30):
            expected = exact(mpmath.mpf(x))
            unit = 2.0 ** (math.frexp(float(expected))[1] - 24)
            error = abs(mpmath.mpf(y) - expected) / unit
        assert error <= 1.5, f"{name}({x}) is {y}, {float(error)} units off"


@pytest.mark.parametrize("name", [*FUNCTIONS, "acosh", "atanh"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_edges(name: str, dtype: torch.dtype, xpu: torch.device) -> None:
    function = getattr(torch, name)
    given = torch.tensor(EDGES, dtype=dtype)
    actual = on_queue(f"aten::{name}", lambda: function(given.to(xpu))).cpu()
    expected = function(given)
    near = 1e-6 if dtype == torch.float32 else 8e-3
    small = 0.0
    if (name, dtype) == ("erf", torch.bfloat16):
        small = 1e-38  # PyTorch's erf of subnormal numbers is 0
    torch.testing.assert_close(actual, expected, rtol=near, atol=small, equal_nan=True)
    assert torch.equal(
        actual.signbit() & ~actual.isnan(), expected.signbit() & ~expected.isnan()
    )
