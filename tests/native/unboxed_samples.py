"""A call of every op that has a function of its own: see csrc/dispatch/unboxed/unboxed_op.h."""

from collections.abc import Callable
from typing import Any

import torch

Arguments = tuple[Any, ...]


def f(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


def p(*shape: int) -> torch.Tensor:
    """Away from zero and from one, where slopes change."""
    return torch.rand(shape) * 0.4 + 0.3


def i(*shape: int) -> torch.Tensor:
    return torch.randint(1, 9, shape)


def b(*shape: int) -> torch.Tensor:
    return torch.rand(shape) > 0.5


def below(limit: int, *shape: int) -> torch.Tensor:
    return torch.randint(limit, shape)


UNARY = """abs.out neg neg_ exp exp_ exp2 expm1 log log_ log2 log10 log1p sqrt sqrt_
rsqrt rsqrt_ sin cos tan asin acos atan sinh cosh reciprocal reciprocal_ erf erfc erfinv
floor ceil round trunc frac sign sgn lgamma digamma isnan logit zero_ relu relu_ sigmoid
sigmoid_ tanh tanh_ gelu silu silu_ elu leaky_relu leaky_relu_ hardtanh hardtanh_
hardswish hardswish_ hardsigmoid softplus mish log_sigmoid_forward"""
BINARY = """add.Tensor add_.Tensor add.out sub.Tensor sub_.Tensor sub.out mul.Tensor
mul_.Tensor mul.out div.Tensor div_.Tensor div.out rsub.Tensor remainder.Tensor
floor_divide fmod.Tensor pow.Tensor_Tensor atan2 hypot maximum minimum fmin fmax
xlogy.Tensor logaddexp eq.Tensor ne.Tensor lt.Tensor gt.Tensor le.Tensor ge.Tensor
sigmoid_backward tanh_backward silu_backward gelu_backward hardswish_backward
hardsigmoid_backward mish_backward clamp.Tensor mse_loss smooth_l1_loss huber_loss
binary_cross_entropy equal logical_and.out logical_or.out"""
COMPARISONS = "eq.Scalar ne.Scalar lt.Scalar gt.Scalar le.Scalar ge.Scalar"
LIMITS = "clamp_min clamp_min_ clamp_max clamp_max_"
TERNARY = "addcmul addcmul_ addcdiv addcdiv_ lerp.Tensor lerp_.Tensor"
REDUCTIONS = "max min prod all any median"
ALONG = """sum.dim_IntList mean.dim nansum amax amin var.correction std.correction
var_mean.correction"""
ALONG_ONE = """argmax argmin max.dim min.dim prod.dim_int all.dim any.dim cumsum
cumprod glu"""
TRIANGLES = "tril triu tril_ triu_"
INDEXED = "index_select gather"

Maker = Callable[[], Arguments]
CALLS: dict[str, Maker] = {
    **dict.fromkeys(UNARY.split(), lambda: (p(3, 4),)),
    **dict.fromkeys(BINARY.split(), lambda: (p(3, 4), p(3, 4))),
    **dict.fromkeys(COMPARISONS.split(), lambda: (p(3, 4), 0.5)),
    **dict.fromkeys(LIMITS.split(), lambda: (f(3, 4), 0.25)),
    **dict.fromkeys(TERNARY.split(), lambda: (p(3, 4), p(3, 4), p(3, 4))),
    **dict.fromkeys(REDUCTIONS.split(), lambda: (f(3, 4),)),
    **dict.fromkeys(ALONG.split(), lambda: (f(3, 4), [1])),
    **dict.fromkeys(ALONG_ONE.split(), lambda: (p(3, 4), 1)),
    **dict.fromkeys(TRIANGLES.split(), lambda: (f(3, 4), 1)),
    "div.Tensor_mode": lambda: (f(3, 4), p(3, 4), {"rounding_mode": "floor"}),
    "div_.Tensor_mode": lambda: (f(3, 4), p(3, 4), {"rounding_mode": "trunc"}),
    "pow.Tensor_Scalar": lambda: (p(3, 4), 2.5),
    "pow_.Scalar": lambda: (p(3, 4), 2.5),
    "pow.Scalar": lambda: (2.5, p(3, 4)),
    "fill_.Scalar": lambda: (f(3, 4), 2.5),
    "fill_.Tensor": lambda: (f(3, 4), f()),
    "threshold": lambda: (f(3, 4), 0.1, 7.0),
    "threshold_backward": lambda: (f(3, 4), f(3, 4), 0.1),
    "elu_backward": lambda: (f(3, 4), 1.0, 1.0, 1.0, False, f(3, 4)),
    "leaky_relu_backward": lambda: (f(3, 4), f(3, 4), 0.1, False),
    "hardtanh_backward": lambda: (f(3, 4), f(3, 4), -1.0, 1.0),
    "softplus_backward": lambda: (f(3, 4), f(3, 4), 1.0, 20.0),
    "log_sigmoid_backward": lambda: (f(3, 4), f(3, 4), p(3, 4)),
    "glu_backward": lambda: (f(3, 2), f(3, 4), 1),
    "_prelu_kernel": lambda: (f(3, 4), p(4)),
    "_prelu_kernel_backward": lambda: (f(3, 4), f(3, 4), p(3, 4)),
    "where.self": lambda: (b(3, 4), f(3, 4), f(3, 4)),
    "clamp": lambda: (f(3, 4), -0.5, 0.5),
    "clamp_": lambda: (f(3, 4), -0.5, 0.5),
    "bitwise_and.Tensor": lambda: (i(3, 4), i(3, 4)),
    "bitwise_or.Tensor": lambda: (i(3, 4), i(3, 4)),
    "bitwise_xor.Tensor": lambda: (i(3, 4), i(3, 4)),
    "bitwise_not": lambda: (i(3, 4),),
    "logical_not.out": lambda: (f(3, 4),),
    "linalg_vector_norm": lambda: (f(3, 4), 2, [1]),
    "norm.ScalarOpt_dim": lambda: (f(3, 4), 2, [1]),
    "aminmax": lambda: (f(3, 4), {"dim": 1}),
    "topk": lambda: (f(3, 4), 2),
    "sort.stable": lambda: (f(3, 4), {"stable": True, "dim": 1}),
    "_softmax": lambda: (f(3, 4), 1, False),
    "_log_softmax": lambda: (f(3, 4), 1, False),
    "_softmax_backward_data": lambda: (f(3, 4), p(3, 4), 1, torch.float32),
    "_log_softmax_backward_data": lambda: (f(3, 4), f(3, 4), 1, torch.float32),
    "mm": lambda: (f(3, 4), f(4, 5)),
    "mm.out": lambda: (f(3, 4), f(4, 5)),
    "addmm": lambda: (f(5), f(3, 4), f(4, 5)),
    "addmm.out": lambda: (f(5), f(3, 4), f(4, 5)),
    "addmm_": lambda: (f(3, 5), f(3, 4), f(4, 5)),
    "bmm": lambda: (f(2, 3, 4), f(2, 4, 5)),
    "bmm.out": lambda: (f(2, 3, 4), f(2, 4, 5)),
    "baddbmm": lambda: (f(2, 3, 5), f(2, 3, 4), f(2, 4, 5)),
    "baddbmm_": lambda: (f(2, 3, 5), f(2, 3, 4), f(2, 4, 5)),
    "addmv": lambda: (f(3), f(3, 4), f(4)),
    "addr": lambda: (f(3, 4), f(3), f(4)),
    "dot": lambda: (f(4), f(4)),
    "vdot": lambda: (f(4), f(4)),
    "cat": lambda: ([f(3, 4), f(2, 4)], 0),
    "cat.out": lambda: ([f(3, 4), f(2, 4)], 0),
    "_stack": lambda: ([f(3, 4), f(3, 4)], 1),
    "index.Tensor": lambda: (f(3, 4), [None, below(4, 2)]),
    "_index_put_impl_": lambda: (f(3, 4), [torch.tensor([0, 2])], f(2, 4), True),
    "index_select": lambda: (f(3, 4), 1, below(4, 3)),
    "index_add": lambda: (f(3, 4), 1, below(4, 3), f(3, 3)),
    "index_add_": lambda: (f(3, 4), 1, below(4, 3), f(3, 3)),
    "index_copy_": lambda: (f(3, 4), 1, torch.tensor([1, 3]), f(3, 2)),
    "index_fill_.int_Scalar": lambda: (f(3, 4), 1, below(4, 3), 7.0),
    "gather": lambda: (f(3, 4), 1, below(4, 3, 2)),
    "scatter.src": lambda: (f(3, 4), 0, torch.tensor([[0, 1, 2, 0]]), f(1, 4)),
    "scatter_.src": lambda: (f(3, 4), 0, torch.tensor([[0, 1, 2, 0]]), f(1, 4)),
    "scatter.value": lambda: (f(3, 4), 1, below(4, 3, 2), 7.0),
    "scatter_.value": lambda: (f(3, 4), 1, below(4, 3, 2), 7.0),
    "scatter_add": lambda: (f(3, 4), 1, below(4, 3, 2), f(3, 2)),
    "scatter_add_": lambda: (f(3, 4), 1, below(4, 3, 2), f(3, 2)),
    "masked_fill_.Scalar": lambda: (f(3, 4), b(3, 4), 7.0),
    "masked_fill_.Tensor": lambda: (f(3, 4), b(3, 4), f()),
    "masked_select": lambda: (f(3, 4), b(3, 4)),
    "nonzero": lambda: (b(3, 4),),
    "take": lambda: (f(3, 4), below(12, 5)),
    "flip": lambda: (f(3, 4), [1]),
    "roll": lambda: (f(3, 4), [1], [1]),
    "unfold_backward": lambda: (f(3, 3, 2), [3, 4], 1, 2, 1),
    "native_layer_norm": lambda: (f(3, 4), [4], f(4), f(4), 1e-5),
    "native_layer_norm_backward": lambda: (
        *(f(3, 4), f(3, 4), [4], f(3, 1), p(3, 1), f(4), f(4), [True] * 3),
    ),
    "native_batch_norm": lambda: (*(f(5, 4), f(4), f(4), f(4), p(4), True, 0.1, 1e-5),),
    "native_batch_norm_backward": lambda: (
        *(f(5, 4), f(5, 4), f(4), f(4), p(4), f(4), p(4), True, 1e-5, [True] * 3),
    ),
    "native_group_norm": lambda: (f(2, 4, 3), f(4), f(4), 2, 4, 3, 2, 1e-5),
    "native_group_norm_backward": lambda: (
        *(f(2, 4, 3), f(2, 4, 3), f(2, 2), p(2, 2), f(4), 2, 4, 3, 2, [True] * 3),
    ),
    "max_pool2d_with_indices": lambda: (f(1, 2, 4, 4), [2, 2]),
    "max_pool2d_with_indices_backward": lambda: (
        *(f(1, 1, 1, 1), f(1, 1, 2, 2), [2, 2], [2, 2], [0, 0], [1, 1], False),
        torch.tensor([[[[3]]]]),
    ),
    "avg_pool2d": lambda: (f(1, 2, 4, 4), [2, 2]),
    "avg_pool2d_backward": lambda: (
        *(f(1, 2, 2, 2), f(1, 2, 4, 4), [2, 2], [2, 2], [0, 0], False, True, None),
    ),
    "_adaptive_avg_pool2d": lambda: (f(1, 2, 4, 4), [2, 2]),
    "_adaptive_avg_pool2d_backward": lambda: (f(1, 2, 2, 2), f(1, 2, 4, 4)),
    "reflection_pad2d": lambda: (f(1, 2, 4, 4), [1, 1, 1, 1]),
    "reflection_pad2d_backward": lambda: (
        *(f(1, 2, 6, 6), f(1, 2, 4, 4), [1, 1, 1, 1]),
    ),
    "replication_pad2d": lambda: (f(1, 2, 4, 4), [1, 1, 1, 1]),
    "upsample_nearest2d": lambda: (f(1, 2, 3, 3), [6, 6]),
    "upsample_nearest2d_backward": lambda: (f(1, 2, 6, 6), [6, 6], [1, 2, 3, 3]),
    "upsample_bilinear2d": lambda: (f(1, 2, 3, 3), [6, 6], False),
    "upsample_bilinear2d_backward": lambda: (
        *(f(1, 2, 6, 6), [6, 6], [1, 2, 3, 3], False),
    ),
    "grid_sampler_2d": lambda: (f(1, 2, 4, 4), f(1, 3, 3, 2), 0, 0, False),
    "nll_loss_forward": lambda: (f(3, 4), below(4, 3), None, 1, -100),
    "nll_loss_backward": lambda: (f(), f(3, 4), below(4, 3), None, 1, -100, p()),
    "nll_loss2d_forward": lambda: (f(2, 4, 3, 3), below(4, 2, 3, 3), p(4), 1, -100),
    "nll_loss2d_backward": lambda: (
        *(f(), f(2, 4, 3, 3), below(4, 2, 3, 3), None, 1, -100, p()),
    ),
    "mse_loss_backward": lambda: (f(), f(3, 4), f(3, 4), 1),
    "binary_cross_entropy_backward": lambda: (f(), p(3, 4), p(3, 4)),
    "embedding_dense_backward": lambda: (f(5, 4), below(7, 5), 7, -1, False),
    "native_dropout_backward": lambda: (f(3, 4), b(3, 4), 2.0),
    "convolution_overrideable": lambda: (
        *(f(1, 2, 5, 5), f(3, 2, 3, 3), f(3), [1, 1], [1, 1], [1, 1]),
        *(False, [0, 0], 1),
    ),
    "convolution_backward_overrideable": lambda: (
        *(f(1, 3, 5, 5), f(1, 2, 5, 5), f(3, 2, 3, 3), [1, 1], [1, 1], [1, 1]),
        *(False, [0, 0], 1, [True, True, True]),
    ),
    "lerp.Scalar": lambda: (f(3, 4), f(3, 4), 0.3),
    "lerp_.Scalar": lambda: (f(3, 4), f(3, 4), 0.3),
    "_amp_foreach_non_finite_check_and_unscale_": lambda: (
        *([f(3), torch.tensor([1.0, torch.inf])], torch.zeros(()), p()),
    ),
}


def call_of(op: str) -> tuple[list[Any], dict[str, Any]]:
    """Arguments on the CPU, the same at every call."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        *args, last = CALLS[op]()
    if isinstance(last, dict):
        return args, last
    return [*args, last], {}
