"""Operands of several types, and conversions of numbers that a type does not have.

Values, types and errors are the CPU's, under both policies: "auto" takes PyTorch's
kernel for such small operands, where the host reads the device's memory.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import xpurt
from xpurt.testing.oracle import agree

POLICIES = pytest.mark.parametrize("policy", ["auto", "sycl"])
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
REFUSALS = (RuntimeError, NotImplementedError)
ALL = (*FLOATS, *INTEGERS[1::3], torch.bool)


def alike(policy: str, call: Callable[..., Any], *arguments: Any) -> None:
    """Results agree, or both sides raise the same type of error."""
    with xpurt.kernel_policy(policy), suppress(*REFUSALS):
        agree(call, *arguments, rtol=1e-6, atol=0)


def in_place(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return x.clone().ldexp_(n)


def into(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return torch.ldexp(x, n, out=torch.empty_like(x))


@POLICIES
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_ldexp_by_integers(dtype: torch.dtype, policy: str, xpu: torch.device) -> None:
    x = torch.tensor([1.5, -2.0, 1e-5], dtype=dtype)
    for whole in INTEGERS:
        alike(policy, torch.ldexp, x, torch.tensor([1, 2, 3], dtype=whole))
    # Numbers below the least one, above the largest, and exponents beyond an int.
    far = torch.tensor([[-30], [-140], [300], [-(2**31) - 1], [2**32 + 1]])
    for call in (torch.ldexp, in_place, into):
        alike(policy, call, x.repeat(5, 1), far)
        alike(policy, call, x, torch.tensor(3))
    alike(policy, torch.ldexp, x.to(dtype)[0], torch.tensor([1, 2]))
    with xpurt.kernel_policy(policy):  # the exponent is a CPU tensor
        found = torch.ldexp(x.to(xpu), torch.tensor(3))
    assert torch.equal(found.cpu(), x * 8)


@POLICIES
def test_ldexp_of_other_types(policy: str, xpu: torch.device) -> None:
    whole, mask = torch.tensor([1, 2, 3]), torch.tensor([True, False, True])
    for x, n in (
        (torch.ones(3), torch.tensor([0.5, 1, 2])),
        (torch.ones(3, dtype=torch.float16), torch.ones(3)),
        (whole, whole),
        (mask, mask),
        (torch.ones(3) + 1j, whole),
        (torch.ones(3), mask),  # refused
    ):
        alike(policy, torch.ldexp, x, n)
    alike(policy, in_place, whole, whole)


def test_ldexp_has_a_gradient(xpu: torch.device) -> None:
    x = torch.tensor([1.5, 2.0], device=xpu, requires_grad=True)
    torch.ldexp(x, torch.tensor([1, 3], device=xpu)).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 8]


@POLICIES
def test_searches_in_the_common_type(policy: str, xpu: torch.device) -> None:
    numbers = torch.tensor([3.5, 5.5, -1, math.nan, math.inf, -math.inf, 2.0**63])
    edges = torch.tensor([1, 3, 5])
    for right, of in product((False, True), (edges, edges.to(torch.uint8))):
        given = {"right": right}
        with xpurt.kernel_policy(policy):
            agree(torch.bucketize, numbers, of, **given)
            agree(torch.bucketize, torch.tensor([-1, 0, 2]), of, **given)
            agree(torch.searchsorted, of, numbers.double(), **given)
            agree(torch.searchsorted, of, numbers[0], **given)
            for number in (3.5, -1, 5, 1e30):
                agree(torch.searchsorted, of, number, **given)
                found = torch.bucketize(number, of.to(xpu), **given)
                assert found.cpu() == torch.bucketize(number, of, **given)
    mixed, order = torch.tensor([3, 5, 1]), torch.tensor([2, 0, 1])
    with xpurt.kernel_policy(policy):
        agree(torch.searchsorted, mixed, numbers[:2], sorter=order)
    for one, other in product(ALL[:-1], ALL[:-1]):
        alike(policy, torch.bucketize, torch.tensor([0, 2, 3]).to(one), edges.to(other))


@POLICIES
def test_equal_compares_in_the_common_type(policy: str, xpu: torch.device) -> None:
    x = torch.tensor([1, 0, 1])
    for one, other in product(ALL, ALL):
        alike(policy, torch.equal, x.to(one), x.to(other))
        alike(policy, torch.equal, x.to(one), (x + 0.1).to(other))
    alike(policy, torch.equal, torch.ones(3), torch.ones(2).double())


@pytest.mark.one_in(2)
@POLICIES
@pytest.mark.parametrize(
    "loss", [F.huber_loss, F.smooth_l1_loss, F.mse_loss, F.binary_cross_entropy]
)
def test_losses(loss: Callable[..., Any], policy: str, xpu: torch.device) -> None:
    x, y = torch.tensor([1, 0, 1]), torch.tensor([0, 0, 1])
    for one, other in product(ALL, ALL):
        alike(policy, loss, x.to(one), y.to(other))
    for one, other in ((torch.float32, torch.complex64), (torch.complex64,) * 2):
        alike(policy, loss, x.to(one), y.to(other))


OUT_OF_RANGE = [
    *(127, 128, 129.7, 255, 256, 300, -1, -1.5, -128, -129, -300, 32768, 65535.0, 7e4),
    *(-4e4, 2.0**31, 2.0**32 + 2**10, -(2.0**31) - 2**10, 2.0**40 + 2**17, 2.0**62),
    *(2.0**63, -(2.0**64), 1e30, math.inf, -math.inf, math.nan),
]


@POLICIES
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_to_integers_out_of_range(
    dtype: torch.dtype, policy: str, xpu: torch.device
) -> None:
    x = torch.tensor(OUT_OF_RANGE, dtype=torch.float64).to(dtype)
    for whole in (*INTEGERS, torch.bool):
        alike(policy, lambda x, whole=whole: x.to(whole), x)
        # One more line, which PyTorch's vectorized code leaves to the scalar one.
        alike(policy, lambda x, whole=whole: x.to(whole), x.repeat(9)[: 9 * 26 - 1])
