"""Which functions of PyTorch keep channels last, and which only read metadata.

A function is on the first list if its result is a new tensor, or one of its arguments,
and never a view; and if its elements do not depend on the order in memory. Random
functions fail the second: they draw in that order.
"""

from collections.abc import Iterator
from typing import Any, Final

import torch
from torch import Tensor

_POINTWISE: Final = """
    relu relu6 leaky_relu elu selu celu gelu silu mish sigmoid tanh hardtanh
    hardswish hardsigmoid hardshrink softshrink tanhshrink softsign softplus logsigmoid
    threshold prelu abs neg exp expm1 log log1p log2 sqrt rsqrt square sin cos erf
    reciprocal sign floor ceil round trunc clamp clip clamp_min clamp_max nan_to_num pow
    add sub mul div true_divide maximum minimum addcmul addcdiv lerp where eq ne lt le gt
    ge isnan isinf isfinite logical_and logical_or logical_not __add__ __radd__ __iadd__
    __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __rtruediv__ __itruediv__
    __neg__ __abs__ __pow__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ clone float half
    bfloat16 double
"""

_OVER_IMAGES: Final = """
    batch_norm instance_norm group_norm local_response_norm max_pool2d max_pool3d
    max_pool2d_with_indices max_pool3d_with_indices avg_pool2d avg_pool3d
    adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d
    adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices interpolate upsample
    softmax log_softmax mean sum amax amin var std logsumexp cat concat concatenate
"""

_METADATA: Final = """
    size dim numel nelement element_size is_floating_point is_complex requires_grad_
    register_hook retain_grad __len__ __hash__ backward get_device is_inference
"""

_ATTRIBUTES: Final = """
    shape dtype device ndim requires_grad grad_fn is_leaf grad is_cpu is_xpu is_cuda
    is_sparse is_mkldnn is_quantized layout _version output_nr
"""


def _functions(names: str) -> Iterator[Any]:
    places = (torch, Tensor, torch.nn.functional, torch._C._nn)
    for name in names.split():
        for each in (name, f"{name}_"):
            for place in places:
                found = getattr(place, each, None)
                if callable(found):
                    yield found


KEEPS_LAYOUT: Final = frozenset(_functions(_POINTWISE + _OVER_IMAGES))

READS_METADATA: Final = frozenset(
    {
        *_functions(_METADATA),
        *(getattr(Tensor, name).__get__ for name in _ATTRIBUTES.split()),
        torch.autograd.backward,
    }
)

# Not random outside of training: then the result is the argument.
DROPOUT: Final = frozenset(_functions("dropout dropout1d dropout2d dropout3d"))

DATA: Final = frozenset({Tensor.data.__get__, Tensor.data.__set__})  # type: ignore[attr-defined]
