"""Linear layers and convolutions in int8 in a block of autocast, with dynamic scales.

The values are those of `xpurt.quantize(model, "dynamic")`: weights have a scale for each
output channel and are quantized once per version; of the activations each token, a row of
a linear layer's input, and each call of a convolution has a scale. Each function has the
arguments of PyTorch's op, after how weights are watched, None if no weights are to be
kept. It returns None where PyTorch's own op is to run: where a gradient is wanted, and for
what `xpurt.quantize` leaves as it is.
"""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor

from xpurt import _layouts
from xpurt.optimization.autocast.converted_weights import converted
from xpurt.optimization.autocast.packed_convolution import sound_lists
from xpurt.optimization.packed_weights import WriteWatch
from xpurt.quantization.weights import int8_per_channel

_DTYPES: Final = (torch.float32, torch.bfloat16, torch.float16)


def _linear(
    watch: WriteWatch | None, input: Any, weight: Any, bias: Tensor | None = None
) -> Tensor | None:
    if not _takes(input, weight, bias):
        return None
    if weight.dim() != 2 or input.dim() < 1 or input.shape[-1] != weight.shape[1]:
        return None
    quantized = _quantized(watch, weight)
    if quantized is None:
        return None
    _layouts.make_plain(input)
    op = torch.ops.xpurt.int8_linear
    made: Tensor = op(input.detach(), *quantized, _in_float32(bias), None, None)
    return made


def _convolution(
    watch: WriteWatch | None,
    input: Any,
    weight: Any,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor | None:
    if not _takes(input, weight, bias):
        return None
    images = input.detach()
    has_batch = input.dim() == weight.dim()
    if input.dim() == weight.dim() - 1:
        images = images.unsqueeze(0)
    elif not has_batch:
        return None
    padding = _in_numbers(padding, weight, dilation)
    if padding is None:
        return None
    by_axis = tuple(
        each if isinstance(each, int) else tuple(each)
        for each in (stride, padding, dilation)
    )
    lists = sound_lists(*by_axis, groups, images.shape, weight.shape)
    quantized = None if lists is None else _quantized(watch, weight)
    if lists is None or quantized is None:
        return None
    op = torch.ops.xpurt.int8_convolution
    made: Tensor = op(images, *quantized, _in_float32(bias), None, None, *lists, False)
    if not has_batch:
        return made.squeeze(0).contiguous()
    if made.dim() == 3:
        return made.contiguous()
    _layouts.note_images(made, input, weight)
    return made


INT8_OPS: Final[dict[str, Callable[..., Tensor | None]]] = {
    "linear": _linear,
    "conv1d": _convolution,
    "conv2d": _convolution,
    "conv3d": _convolution,
}


def _takes(input: Any, weight: Any, bias: Any) -> bool:
    if type(input) is not Tensor or type(weight) not in (Tensor, torch.nn.Parameter):
        return False
    operands = [input, weight] if bias is None else [input, weight, bias]
    if torch.is_grad_enabled() and any(each.requires_grad for each in operands):
        return False
    device = input.device
    if device.type == "xpu" and torch.xpu.is_current_stream_capturing():
        return False
    return (
        not torch.is_autocast_enabled(device.type)  # of a block within
        and all(
            each.device == device
            and each.layout is torch.strided
            and each.dtype in _DTYPES
            and each.numel() > 0
            for each in operands
        )
        and (bias is None or bias.shape == weight.shape[:1])
    )


def _quantized(
    watch: WriteWatch | None, weight: Tensor
) -> tuple[Tensor, Tensor] | None:
    """The values and the scales; None for a weight that is not finite."""
    values = converted(weight, "int8 values", _values, watch)
    if values.numel() == 0:
        return None
    return values, converted(weight, "int8 scales", _scales, watch)


def _values(weight: Tensor) -> Tensor:
    if not bool(weight.isfinite().all()):
        return weight.new_empty(0, dtype=torch.int8)
    return int8_per_channel(weight)[0]


def _scales(weight: Tensor) -> Tensor:
    return int8_per_channel(weight)[1]


def _in_float32(bias: Tensor | None) -> Tensor | None:
    return None if bias is None else bias.detach().float()


def _in_numbers(padding: Any, weight: Tensor, dilation: Any) -> Any:
    """The zeros on each side; None if they differ between the sides."""
    if padding == "valid":
        return 0
    if padding != "same":
        return padding
    axes = weight.dim() - 2
    spread = [dilation] * axes if isinstance(dilation, int) else list(dilation)
    both = [
        each * (size - 1)
        for each, size in zip(
            spread * (axes // len(spread)), weight.shape[2:], strict=True
        )
    ]
    return None if any(each % 2 for each in both) else tuple(x // 2 for x in both)
