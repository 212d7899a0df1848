"""Rows of one operand: functions, rounding, predicates, filling and copying."""

from xpurt.kernels.kinds.row import (
    ANGLE,
    ARITHMETIC,
    BITWISE,
    COPYING,
    FILLING,
    FLOATING,
    FLOATING_ONLY,
    MAGNITUDE,
    NUMERIC,
    PREDICATE,
    Row,
)

NEAR_ZERO = ("near_zero",)

FUNCTIONS = (
    Row("exp", "exp(a0)", FLOATING, flops=20, complex="exp_of(a0)"),
    Row("exp2", "exp2(a0)", FLOATING, flops=10),
    Row("expm1", "expm1_of(a0)", FLOATING, flops=15, functions=NEAR_ZERO),
    Row("log", "log(a0)", FLOATING, flops=45, complex="log_of(a0)"),
    Row("log2", "log2(a0)", FLOATING, flops=70, complex="log_of(a0) / LOG_2"),
    Row("log10", "log10(a0)", FLOATING, flops=75, complex="log_of(a0) / LOG_10"),
    Row("log1p", "log1p_of(a0)", FLOATING, flops=30, functions=NEAR_ZERO),
    Row("sqrt", "sqrt(a0)", FLOATING, flops=4, complex="sqrt_of(a0)"),
    Row("rsqrt", "1 / sqrt(a0)", FLOATING, flops=5, complex="over(ONE, sqrt_of(a0))"),
    Row("reciprocal", "1 / a0", FLOATING, flops=4, complex="over(ONE, a0)"),
    Row("sin", "sin(a0)", FLOATING, flops=70, complex="sin_of(a0)", ulp=4),
    Row("cos", "cos(a0)", FLOATING, flops=70, complex="cos_of(a0)", ulp=4),
    Row("tan", "tan(a0)", FLOATING, flops=80, complex="tan_of(a0)", ulp=4),
    Row("asin", "asin(a0)", FLOATING, flops=20),
    Row("acos", "acos(a0)", FLOATING, flops=20),
    Row("atan", "atan(a0)", FLOATING, flops=40),
    Row("sinh", "sinh(a0)", FLOATING, flops=75, complex="sinh_of(a0)"),
    Row("cosh", "cosh(a0)", FLOATING, flops=70, complex="cosh_of(a0)"),
    Row(
        "tanh",
        "hyperbolic_tangent(a0)",
        FLOATING,
        flops=40,
        complex="tanh_of(a0)",
        functions=NEAR_ZERO,
    ),
    Row("asinh", "asinh(a0)", FLOATING, flops=80),
    Row("acosh", "acosh_of(a0)", FLOATING, flops=90),
    Row("atanh", "atanh_of(a0)", FLOATING, flops=80),
    Row(
        "sigmoid",
        "1 / (1 + exp(-a0))",
        FLOATING,
        flops=14,
        complex="sigmoid_of(a0)",
        complex_ulp=8,
    ),
    Row(
        "erf",
        "error_function(a0)",
        FLOATING,
        flops=20,
        ulp=4,
        functions=NEAR_ZERO,
    ),
    Row("erfc", "erfc(a0)", FLOATING, flops=75),
    Row("lgamma", "log_gamma(a0)", FLOATING, flops=360, functions=("log_gamma",)),
    Row("sinc", "sinc_of(a0)", FLOATING, flops=50, ulp=4),
    Row("logit", "logit_of(a0, eps)", FLOATING, flops=65, defaults={"eps": "-1"}),
    Row("special_entr", "entropy_of(a0)", FLOATING, flops=50),
)

ROUNDING = (
    Row("floor", "floor(a0)", NUMERIC, integral="a0"),
    Row("ceil", "ceil(a0)", NUMERIC, integral="a0"),
    Row("trunc", "trunc(a0)", NUMERIC, integral="a0"),
    Row("round", "rint(a0)", NUMERIC, integral="a0"),
    Row(
        "round",
        "round_to(a0, decimals)",
        FLOATING_ONLY,
        flops=20,
        overloads=("decimals", "decimals_out"),
    ),
    Row("frac", "a0 - trunc(a0)", FLOATING),
    Row(
        "abs",
        "fabs(a0)",
        MAGNITUDE,
        integral="a0 < 0 ? -a0 : a0",
        boolean="a0",
        complex="hypot(a0.x, a0.y)",
    ),
    Row("neg", "-a0", NUMERIC, complex="-a0"),
    Row("sign", "(a0 > 0) - (a0 < 0)", ARITHMETIC, boolean="a0"),
    Row(
        "sgn",
        "(a0 > 0) - (a0 < 0)",
        ARITHMETIC,
        boolean="a0",
        complex="direction_of(a0)",
    ),
    Row(
        "nan_to_num",
        "isnan(a0) ? nan : a0 == INFINITY ? posinf : a0 == -INFINITY ? neginf : a0",
        FLOATING_ONLY,
        flops=4,
        defaults={"nan": "0", "posinf": "LARGEST", "neginf": "-LARGEST"},
    ),
    Row(
        "angle",
        "a0 != a0 ? a0 : a0 < 0 ? 3.141592653589793 : 0",
        ANGLE,
        complex="atan2(a0.y, a0.x)",
    ),
    Row("conj_physical", "a0", ARITHMETIC, complex="(C)(a0.x, -a0.y)"),
    Row("bitwise_not", "~a0", BITWISE, boolean="!a0"),
)

PREDICATES = (
    Row("logical_not", "a0 == 0", PREDICATE, complex="all(a0 == 0)"),
    Row("isnan", "isnan(a0)", PREDICATE, integral="0", boolean="0"),
    Row("isposinf", "a0 == INFINITY", PREDICATE, integral="0", boolean="0"),
    Row("isneginf", "a0 == -INFINITY", PREDICATE, integral="0", boolean="0"),
    Row("signbit", "signbit(a0)", PREDICATE, integral="a0 < 0", boolean="0"),
)

MOVES = (
    Row("fill_", "a1", FILLING, zero_dim=(1,), complex="a1", converts_scalars=True),
    Row("zero_", "0", FILLING, complex="0"),
    Row("copy_", "a1", COPYING, ignored=("non_blocking",), complex="a1"),
)

ROWS = (*FUNCTIONS, *ROUNDING, *PREDICATES, *MOVES)
