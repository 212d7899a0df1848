"""What the primitives of linear layers and of convolutions ask for.

On the CPU they are PyTorch's own ops of the namespace mkldnn, on xpu oneDNN's, where the
call fits; other calls are computed by the layers as they are. Values differ by rounding,
and a primitive's ReLU makes 0 of NaN.
"""

from functools import cache
from typing import Final

import torch
from torch import Tensor

from xpurt.functional.activations import Activation
from xpurt.mapping import current_placement
from xpurt.optimization.packed_weights import may_be_packed


def dtype_of_primitive(
    x: Tensor, weight: Tensor, *others: Tensor | None
) -> torch.dtype | None:
    """What a primitive computes in; None if it can't compute this call. others: the bias,
    and what is folded into the weight."""
    kind, dtype = x.device.type, x.dtype
    if dtype not in _TYPES or kind not in ("cpu", "xpu") or x.numel() == 0:
        return None
    if torch.is_grad_enabled():
        return None
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
    elif weight.dtype != dtype:
        return None
    if weight.device != x.device or weight.is_inference():
        return None
    if not may_be_packed(weight, *others):
        return None
    return dtype if kind == "xpu" or dtype in types_of_cpu() else None


_TYPES: Final = (torch.float32, torch.bfloat16, torch.float16)


@cache
def types_of_cpu() -> tuple[torch.dtype, ...]:
    """What oneDNN computes on this processor."""
    having = {
        torch.float32: True,
        torch.bfloat16: torch.ops.mkldnn._is_mkldnn_bf16_supported(),
        torch.float16: torch.ops.mkldnn._is_mkldnn_fp16_supported(),
    }
    return tuple(dtype for dtype, there in having.items() if there)


def adds(other: Tensor | None, dtype: torch.dtype, sizes: list[int]) -> bool:
    """Whether a primitive can add it: another type would be that of the sum."""
    return other is None or (other.dtype == dtype and list(other.shape) == sizes)


def finished(y: Tensor, other: Tensor | None, activation: Activation) -> Tensor:
    return activation(y if other is None else y + other)


def in_type(
    dtype: torch.dtype, weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Tensors of their own, since what is packed must not keep the weight alive."""
    made = weight.detach().to(dtype)
    return made, None if bias is None else bias.detach().to(dtype)


def is_packed(made: Tensor, x: Tensor) -> bool:
    """Whether a primitive takes it, on any device that may compute the op."""
    devices = current_placement().ordinals[x.device.index or 0]
    return made.numel() > 0 and len(devices) == 1
