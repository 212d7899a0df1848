"""Rows of three operands, and selections."""

from xpurt.kernels.kinds.row import ARITHMETIC, FILLING, FLOATING_ONLY, NUMERIC, Row

ROWS = (
    Row("where", "a0 ? a1 : a2", ARITHMETIC, conditions=(0,), complex="a0 ? a1 : a2"),
    Row(
        "masked_fill",
        "a1 ? a2 : a0",
        FILLING,
        conditions=(1,),
        zero_dim=(2,),
        complex="a1 ? a2 : a0",
        converts_scalars=True,
    ),
    Row(
        "addcmul",
        "a0 + value * a1 * a2",
        NUMERIC,
        flops=3,
        complex="a0 + times(times(value, a1), a2)",
    ),
    Row(
        "addcdiv",
        "a0 + value * a1 / a2",
        FLOATING_ONLY,
        flops=18,
        complex="a0 + over(times(value, a1), a2)",
    ),
    Row(
        "lerp",
        "fabs(a2) < 0.5 ? a0 + a2 * (a1 - a0) : a1 - (a1 - a0) * (1 - a2)",
        FLOATING_ONLY,
        flops=5,
        same_type=True,
    ),
    Row(
        "clamp",
        "minimum_of(maximum_of(a0, a1), a2)",
        NUMERIC,
        flops=2,
        defaults={"a1": "LOWEST", "a2": "HIGHEST"},
        converts_scalars=True,
    ),
    Row("clamp_min", "maximum_of(a0, a1)", NUMERIC, converts_scalars=True),
    Row("clamp_max", "minimum_of(a0, a1)", NUMERIC, converts_scalars=True),
)
