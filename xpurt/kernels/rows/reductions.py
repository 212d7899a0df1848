"""Rows that reduce along dimensions, softmax and similar ops, and matrix products."""

from xpurt.kernels.kinds.element_types import BOOL, COMPLEX, FLOATS, INTS
from xpurt.kernels.kinds.row import (
    ARITHMETIC,
    Kind,
    Matmul,
    Reduction,
    Softmax,
)

SUMMING = Kind(FLOATS + INTS + COMPLEX, compute="widened")
AVERAGING = Kind(FLOATS + COMPLEX)
ANSWERING = Kind(BOOL, result="boolean")

REDUCTIONS = (
    Reduction("sum", SUMMING, identity="0", combine="a + b"),
    Reduction("mean", AVERAGING, identity="0", combine="a + b", finish="acc / (C)n"),
    # The rounding errors of a product add up in any order.
    Reduction("prod", SUMMING, identity="ONE", combine="times(a, b)", in_double=True),
    Reduction(
        "amax",
        ARITHMETIC,
        identity="LOWEST",
        combine="maximum_of(a, b)",
        raises_on_empty=True,
    ),
    Reduction(
        "amin",
        ARITHMETIC,
        identity="HIGHEST",
        combine="minimum_of(a, b)",
        raises_on_empty=True,
    ),
    Reduction(
        "max",
        ARITHMETIC,
        identity="LOWEST",
        combine="maximum_of(a, b)",
        raises_on_empty=True,
    ),
    Reduction(
        "min",
        ARITHMETIC,
        identity="HIGHEST",
        combine="minimum_of(a, b)",
        raises_on_empty=True,
    ),
    Reduction("any", ANSWERING, identity="0", combine="a | b", transform="a0 != 0"),
    Reduction("all", ANSWERING, identity="1", combine="a & b", transform="a0 != 0"),
)

SOFTMAXES = (
    Softmax("_softmax", "exp(a0 - most) / sum", flops=22),
    Softmax("_log_softmax", "a0 - most - log(sum)", flops=14),
    Softmax("_softmax_backward_data", "(a0 - sum) * a1", summand="a0 * a1", flops=4),
    Softmax("_log_softmax_backward_data", "a0 - exp(a1) * sum", summand="a0", flops=14),
)

MULTIPLIED = Kind(FLOATS + COMPLEX)

MATMULS = (
    Matmul("mm", MULTIPLIED),
    Matmul("addmm", MULTIPLIED),
    Matmul("bmm", MULTIPLIED),
    Matmul("baddbmm", MULTIPLIED),
    Matmul("_addmm_activation"),
    Matmul("_int_mm", Kind("c")),
)

ROWS = (*REDUCTIONS, *SOFTMAXES, *MATMULS)
