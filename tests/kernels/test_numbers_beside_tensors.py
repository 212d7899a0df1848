"""Python numbers as operands of rows of two operands, also in place: as on the CPU."""

import math
from collections.abc import Callable

import pytest
import torch

import xpurt

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
DTYPES = (*FLOATS, torch.int8, torch.int64, torch.uint8, torch.bool, torch.complex64)
NUMBERS = (2, -3, 0.5, -0.5, -0.0, math.inf, math.nan, True, 1e39, 2 - 1j)
OPS = "sub rsub mul remainder fmod pow copysign eq ne lt le gt ge logical_and".split()


def values(dtype: torch.dtype) -> torch.Tensor:
    """Whole numbers and halves, some 64: whole vectors, and a rest."""
    some = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -2.5, 3.0, 100.0, math.inf, -math.inf]
    if dtype.is_floating_point:
        x = torch.tensor(some, dtype=torch.double)
    elif dtype.is_complex:
        x = torch.tensor([1, -1, 1j, 2 - 3j, -2.5 + 1j, 1e4, 0.25])
    else:
        x = torch.tensor([1, 2, 3, 7, 100])
    return x.to(dtype).repeat(6)


def outcome(call: Callable[[], torch.Tensor]) -> torch.Tensor | str:
    try:
        return call().cpu()
    except (RuntimeError, TypeError) as error:
        return str(error)


@pytest.mark.one_in(4)
@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("in_place", [False, True], ids=["new", "in_place"])
@pytest.mark.parametrize("op", OPS)
def test_as_on_the_cpu(op: str, in_place: bool, xpu: torch.device) -> None:
    if in_place and not hasattr(torch.Tensor, op + "_"):
        pytest.skip(f"PyTorch has no {op}_")
    function = getattr(torch.Tensor, op + "_") if in_place else getattr(torch, op)
    for dtype in DTYPES:
        x = values(dtype)
        for number in NUMBERS:
            if op == "pow" and number == 1e39 and dtype.itemsize == 2:
                continue  # the CPU refuses it; it is infinite here
            expected = outcome(lambda x=x, n=number: function(x.clone(), n))
            with xpurt.kernel_policy("sycl"):
                found = outcome(lambda x=x, n=number: function(x.to(xpu), n))
            case = f"{op} of {dtype} and {number!r}"
            if isinstance(expected, str) or isinstance(found, str):
                both = isinstance(expected, str) and isinstance(found, str)
                # Error or none; the tensors themselves would fill the screen.
                given = [
                    x if isinstance(x, str) else "a result" for x in (found, expected)
                ]
                assert both, f"{case}: {given[0]} on xpu, {given[1]} on the CPU"
                continue
            torch.testing.assert_close(
                found, expected, equal_nan=True, msg=lambda m, c=case: f"{c}: {m}"
            )
            if found.dtype.is_floating_point:
                zeros = (found == 0) & (expected == 0)
                assert not (zeros & (found.signbit() != expected.signbit())).any(), case


@pytest.mark.parametrize("condition", [True, False])
def test_a_condition_without_dimensions(condition: bool, xpu: torch.device) -> None:
    x, y = values(torch.float32), torch.arange(66.0)
    with xpurt.kernel_policy("sycl"):
        for chosen in (torch.tensor(condition), torch.tensor(condition, device=xpu)):
            found = torch.where(chosen, x.to(xpu), y.to(xpu)).cpu()
            torch.testing.assert_close(found, x if condition else y)


def test_all_elements_are_rolled(xpu: torch.device) -> None:
    x = torch.arange(1.0, 16.0).view(3, 5)
    with xpurt.kernel_policy("sycl"):
        for shift in (0, 1, -1, 15, 16, -31):
            assert torch.equal(x.to(xpu).roll(shift).cpu(), x.roll(shift))
            found = x.to(xpu).t().roll(shift).cpu()
            assert torch.equal(found, x.t().roll(shift))
