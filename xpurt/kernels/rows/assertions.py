"""Rows of assertions on tensors, which no host waits for: the next wait raises."""

import torch
from torch import Tensor

from xpurt import _C
from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import ARITHMETIC, MOVING

# PyTorch's messages.
ZERO = "Expected Tensor with single nonzero value, but got zero"
AMBIGUOUS = "Boolean value of Tensor with {} is ambiguous"

ASSERT = CustomKernel(
    "xpurt::assert_true",
    (
        Step(
            over="self",
            text="""
  long index[8];
  if (!self_load(self_unravel(i, index))) FAULT_OF(message);
""",
        ),
    ),
    ARITHMETIC,
    schema="(Tensor self, int message) -> ()",
)


def assert_async(self: Tensor, assert_msg: str = ZERO) -> None:
    """Raises RuntimeError at once unless `self` has one element, and at the next wait
    if this is zero."""
    if self.numel() != 1:
        count = "more than one value" if self.numel() else "no values"
        raise RuntimeError(AMBIGUOUS.format(count))
    number = _C.number_of_message(assert_msg or "Assertion is failed")
    torch.ops.xpurt.assert_true(self != 0, number)


def functional_assert_async(self: Tensor, assert_msg: str, dep_token: Tensor) -> Tensor:
    """The same, with a result that later ops depend on."""
    assert_async(self, assert_msg)
    return dep_token.clone()


ROWS: tuple[CustomKernel | Decomposed, ...] = (
    ASSERT,
    Decomposed("_assert_async", assert_async, MOVING),
    Decomposed("_functional_assert_async", functional_assert_async, MOVING),
)
