"""Rows of two operands: arithmetic, comparisons, logic and bits."""

from xpurt.kernels.kinds.element_types import INTS
from xpurt.kernels.kinds.row import (
    ARITHMETIC,
    BITWISE,
    FLOATING,
    FLOATING_ONLY,
    INTEGRAL,
    NUMERIC,
    PREDICATE,
    Kind,
    Row,
)

# PyTorch first rounds a quotient of narrow floats to their type.
ROUNDING = Kind("fd" + INTS)
ROUNDED_QUOTIENT = {
    "trunc": "trunc_quotient(a0, a1)",
    "floor": "floor_quotient(a0, a1)",
}

ARITHMETIC_ROWS = (
    Row("add", "a0 + alpha * a1", ARITHMETIC, complex="a0 + times(alpha, a1)"),
    Row("sub", "a0 - alpha * a1", NUMERIC, complex="a0 + times(0 - alpha, a1)"),
    Row(
        "rsub",
        "a1 - alpha * a0",
        NUMERIC,
        leading=1,
        complex="a1 + times(0 - alpha, a0)",
    ),
    Row("mul", "a0 * a1", ARITHMETIC, complex="times(a0, a1)"),
    Row("div", "a0 / a1", FLOATING, flops=14, complex="over(a0, a1)"),
    Row("div", ROUNDED_QUOTIENT, ROUNDING, flops=20, raises_on_zero=True),
    Row(
        "floor_divide",
        "floor_quotient(a0, a1)",
        NUMERIC,
        flops=110,
        raises_on_zero=True,
    ),
    Row("remainder", "remainder_of(a0, a1)", NUMERIC, flops=70, raises_on_zero=True),
    Row(
        "fmod",
        "fmod(a0, a1)",
        NUMERIC,
        flops=70,
        integral="trunc_rest(a0, a1)",
        raises_on_zero=True,
    ),
    Row(
        "pow",
        "A1_IS_SCALAR ? power_by_scalar(a0, a1) : power_of(a0, a1)",
        FLOATING_ONLY,
        flops=160,
        complex="A1_IS_SCALAR ? power_by_scalar(a0, a1) : power_of(a0, a1)",
        complex_ulp=8,
        converts_scalars=True,
    ),
    Row("maximum", "maximum_of(a0, a1)", ARITHMETIC),
    Row("minimum", "minimum_of(a0, a1)", ARITHMETIC),
    Row("fmax", "a0 != a0 || a1 > a0 ? a1 : a0", ARITHMETIC, flops=2),
    Row("fmin", "a0 != a0 || a1 < a0 ? a1 : a0", ARITHMETIC, flops=2),
    Row("atan2", "atan2(a0, a1)", FLOATING, flops=60, ulp=4),
    Row("hypot", "hypot(a0, a1)", FLOATING_ONLY, flops=40),
    Row("copysign", "copysign(a0, a1)", FLOATING),
    # The step is one of the type of the operands, not of a wider common type.
    Row(
        "nextafter",
        "next_of(a0, a1)",
        FLOATING_ONLY,
        flops=19,
        functions=("next",),
        same_type=True,
    ),
    Row("xlogy", "xlogy_of(a0, a1)", FLOATING, flops=55),
    Row("special_xlog1py", "xlog1py_of(a0, a1)", FLOATING, flops=90, ulp=4),
    Row("logaddexp", "logaddexp_of(a0, a1)", FLOATING_ONLY, flops=130, ulp=4, scale=1),
    Row(
        "logaddexp2", "logaddexp2_of(a0, a1)", FLOATING_ONLY, flops=120, ulp=4, scale=1
    ),
    Row("heaviside", "a0 == 0 ? a1 : (C)(a0 > 0)", ARITHMETIC, same_type=True),
    Row("gcd", "gcd_of(a0, a1)", INTEGRAL, flops=40),
    Row("lcm", "lcm_of(a0, a1)", INTEGRAL, flops=45),
)

COMPARISONS = (
    Row("eq", "a0 == a1", PREDICATE, complex="all(a0 == a1)"),
    Row("ne", "a0 != a1", PREDICATE, complex="any(a0 != a1)"),
    Row("lt", "a0 < a1", PREDICATE),
    Row("le", "a0 <= a1", PREDICATE),
    Row("gt", "a0 > a1", PREDICATE),
    Row("ge", "a0 >= a1", PREDICATE),
)

LOGIC_AND_BITS = (
    Row(
        "logical_and",
        "a0 != 0 && a1 != 0",
        PREDICATE,
        complex="any(a0 != 0) && any(a1 != 0)",
    ),
    Row(
        "logical_or",
        "a0 != 0 || a1 != 0",
        PREDICATE,
        complex="any(a0 != 0) || any(a1 != 0)",
    ),
    Row(
        "logical_xor",
        "(a0 != 0) != (a1 != 0)",
        PREDICATE,
        complex="any(a0 != 0) != any(a1 != 0)",
    ),
    Row("bitwise_and", "a0 & a1", BITWISE),
    Row("bitwise_or", "a0 | a1", BITWISE),
    Row("bitwise_xor", "a0 ^ a1", BITWISE),
    Row("bitwise_left_shift", "shift_left(a0, a1)", INTEGRAL, flops=3),
    Row("bitwise_right_shift", "shift_right(a0, a1)", INTEGRAL, flops=3),
    # What Python's operators << and >> call. Their in-place forms have other names.
    Row("__lshift__", "shift_left(a0, a1)", INTEGRAL, flops=3),
    Row("__ilshift__", "shift_left(a0, a1)", INTEGRAL, flops=3),
    Row("__rshift__", "shift_right(a0, a1)", INTEGRAL, flops=3),
    Row("__irshift__", "shift_right(a0, a1)", INTEGRAL, flops=3),
)

ROWS = (*ARITHMETIC_ROWS, *COMPARISONS, *LOGIC_AND_BITS)
