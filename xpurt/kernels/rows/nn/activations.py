"""Rows of activations, forward and backward.

In a backward row, a0 is the gradient. a1 is the input, or the result of the forward op
if PyTorch saves that.
"""

from xpurt.kernels.kinds.row import FLOATING_ONLY, NUMERIC, Row

FORWARD = (
    Row("relu", "a0 < 0 ? 0 : a0", NUMERIC),
    Row("leaky_relu", "a0 > 0 ? a0 : a0 * negative_slope", FLOATING_ONLY),
    Row("_prelu_kernel", "a0 > 0 ? a0 : a1 * a0", FLOATING_ONLY, same_type=True),
    Row(
        "elu",
        "a0 < 0 ? expm1_of(a0 * input_scale) * alpha * scale : a0 * scale",
        FLOATING_ONLY,
        flops=35,
        functions=("near_zero",),
    ),
    Row("silu", "a0 / (1 + exp(-a0))", FLOATING_ONLY, flops=35),
    Row("mish", "mish_of(a0)", FLOATING_ONLY, flops=40, ulp=4, scale=1e-36),
    Row(
        "gelu",
        {"none": "gelu_of(a0)", "tanh": "gelu_tanh_of(a0)"},
        FLOATING_ONLY,
        flops=85,
        ulp=512,
    ),
    Row(
        "softplus",
        "a0 * beta > threshold ? a0 : log1p(exp(a0 * beta)) / beta",
        FLOATING_ONLY,
        flops=120,
    ),
    Row("hardtanh", "minimum_of(maximum_of(a0, min_val), max_val)", NUMERIC, flops=2),
    Row(
        "hardsigmoid",
        "minimum_of(maximum_of(a0 + 3, 0), 6) / 6",
        FLOATING_ONLY,
        flops=10,
    ),
    Row(
        "hardswish",
        "a0 * minimum_of(maximum_of(a0 + 3, 0), 6) / 6",
        FLOATING_ONLY,
        flops=5,
    ),
    Row("hardshrink", "a0 >= -lambd && a0 <= lambd ? 0 : a0", FLOATING_ONLY, flops=2),
    Row(
        "softshrink",
        "a0 > lambd ? a0 - lambd : a0 < -lambd ? a0 + lambd : a0 != a0 ? a0 : 0",
        FLOATING_ONLY,
        flops=4,
        raises_on_negative=True,
    ),
    Row("threshold", "a0 <= threshold ? value : a0", NUMERIC),
)

BACKWARD = (
    Row("sigmoid_backward", "a0 * (1 - a1) * a1", FLOATING_ONLY, flops=3),
    Row("tanh_backward", "a0 * (1 - a1 * a1)", FLOATING_ONLY, flops=3),
    Row("threshold_backward", "a1 <= threshold ? 0 : a0", NUMERIC, leading=1),
    Row(
        "leaky_relu_backward",
        "a1 > 0 ? a0 : a0 * negative_slope",
        FLOATING_ONLY,
        leading=1,
        ignored=("self_is_result",),
    ),
    Row(
        "elu_backward",
        {
            "": "a1 > 0 ? a0 * scale "
            ": a0 * input_scale * alpha * scale * exp(a1 * input_scale)",
            "true": "a1 > 0 ? a0 * scale : a0 * input_scale * (a1 + alpha * scale)",
        },
        FLOATING_ONLY,
        flops=35,
    ),
    Row(
        "silu_backward",
        "a0 * sigmoid_of(a1) * (1 + a1 * (1 - sigmoid_of(a1)))",
        FLOATING_ONLY,
        flops=18,
    ),
    Row("mish_backward", "a0 * mish_slope(a1)", FLOATING_ONLY, flops=60, ulp=16),
    Row(
        "gelu_backward",
        {"none": "a0 * gelu_slope(a1)", "tanh": "a0 * gelu_tanh_slope(a1)"},
        FLOATING_ONLY,
        flops=120,
        ulp=64,
    ),
    Row(
        "softplus_backward",
        "a0 * softplus_slope(a1, beta, threshold)",
        FLOATING_ONLY,
        flops=45,
        ulp=4,
    ),
    Row(
        "hardtanh_backward",
        "a1 > min_val && a1 < max_val ? a0 : 0",
        FLOATING_ONLY,
        flops=2,
    ),
    Row(
        "hardsigmoid_backward", "a1 > -3 && a1 < 3 ? a0 / 6 : 0", FLOATING_ONLY, flops=3
    ),
    Row(
        "hardswish_backward",
        "a1 >= 3 ? a0 : a1 <= -3 ? 0 : a0 * (a1 / 3 + 0.5)",
        FLOATING_ONLY,
        flops=11,
    ),
    Row(
        "hardshrink_backward",
        "a1 < -lambd || a1 > lambd ? a0 : 0",
        FLOATING_ONLY,
        flops=2,
    ),
    Row(
        "softshrink_backward",
        "a1 < -lambd || a1 > lambd ? a0 : 0",
        FLOATING_ONLY,
        flops=2,
    ),
    Row(
        "logit_backward",
        "logit_backward_of(a0, a1, eps)",
        FLOATING_ONLY,
        flops=40,
        defaults={"eps": "-1"},
    ),
    Row("native_dropout_backward", "a0 * a1 * scale", FLOATING_ONLY, flops=2),
    Row(
        "rrelu_with_noise_backward",
        {
            "": "a1 > 0 ? a0 : a0 * (lower + upper) / 2",
            "true": "upper - lower > 0.000001 ? a0 * a2 "
            ": a1 > 0 ? a0 : a0 * (lower + upper) / 2",
        },
        FLOATING_ONLY,
        flops=4,
        ignored=("self_is_result",),
    ),
)

ROWS = (*FORWARD, *BACKWARD)
