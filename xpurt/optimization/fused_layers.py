"""Linear layers and convolutions, each with what is around it as one primitive.

On the CPU by PyTorch's own ops of the namespace mkldnn, on xpu by oneDNN's primitives,
where the call fits; else by the layers as they are. Values differ by rounding, and a
primitive's ReLU makes 0 of NaN.
"""

from functools import cache
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from xpurt.mapping import current_placement
from xpurt.optimization.activations import NONE, Activation
from xpurt.optimization.packed_weights import may_be_packed, packed
from xpurt.optimization.winograd_layers import pack_winograd_weight, takes_winograd

Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d
BatchNorm = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d

# Formats of xpurt::fused_convolution.
_CONTIGUOUS: Final = 0
_CHANNELS_LAST: Final = 1


def linear(
    layer: nn.Linear,
    x: Tensor,
    other: Tensor | None = None,
    activation: Activation = NONE,
) -> Tensor:
    """activation(layer(x) + other), without gradients. x: (..., in); other and the
    result: (..., out)."""
    sizes = [*x.shape[:-1], layer.out_features]
    dtype = _dtype_of_primitive(layer, x)
    if dtype is None or x.dim() < 2:
        return _finished(F.linear(x, layer.weight, layer.bias), other, activation)
    if not _adds(other, dtype, sizes):
        return _finished(linear(layer, x), other, activation)
    if _is_row_in_float32(x, dtype):
        return _finished(F.linear(x, layer.weight, layer.bias), other, activation)
    x = x.to(dtype)
    if x.device.type == "cpu":
        return _linear_on_cpu((layer,), x, other, activation)
    return _linear_on_xpu((layer,), x, other, activation, sizes)


def joined_linear(layers: tuple[nn.Linear, ...], x: Tensor) -> Tensor | None:
    """The results of linear layers of one input side by side, as one product without
    gradients; None if that can't be, or takes longer. x: (..., in)."""
    dtypes = {_dtype_of_primitive(layer, x) for layer in layers}
    (dtype, *others) = dtypes
    sizes = [*x.shape[:-1], sum(layer.out_features for layer in layers)]
    if dtype is None or others or x.dim() < 2 or _is_row_in_float32(x, dtype):
        return None
    x = x.to(dtype)
    if x.device.type == "cpu":
        return _linear_on_cpu(layers, x, None, NONE)
    return _linear_on_xpu(layers, x, None, NONE, sizes)


def _is_row_in_float32(x: Tensor, dtype: torch.dtype) -> bool:
    """Whether PyTorch's product of a matrix and a vector is to be taken. A primitive takes
    1.2 to 1.7 of its time in float32, and 0.6 to 1.0 in bfloat16 (processor time of one
    thread, AMD EPYC, 2026-11-26)."""
    return x.dtype == dtype == torch.float32 and x.numel() == x.shape[-1]


def convolution(
    layer: Convolution,
    x: Tensor,
    norm: BatchNorm | None = None,
    other: Tensor | None = None,
    activation: Activation = NONE,
) -> Tensor:
    """activation(norm(layer(x)) + other), without gradients; the norm by its running
    statistics. x: (batch, channels, ...)."""
    dtype = _dtype_of_primitive(layer, x)
    if dtype is None or x.dim() != layer.weight.dim():
        y = layer._conv_forward(x, layer.weight, layer.bias)
        if norm is not None:
            y = F.batch_norm(
                y, norm.running_mean, norm.running_var, norm.weight, norm.bias, False,
                0.0, norm.eps,
            )  # fmt: skip
        return _finished(y, other, activation)
    sizes = output_sizes(layer, x)
    if not _adds(other, dtype, sizes):
        return _finished(convolution(layer, x, norm), other, activation)
    x = x.to(dtype)
    if x.device.type == "cpu":
        return _convolution_on_cpu(layer, x, norm, other, activation)
    return _convolution_on_xpu(layer, x, norm, other, activation, sizes)


def output_sizes(layer: Convolution, x: Tensor) -> list[int]:
    sizes = [x.shape[0], layer.out_channels]
    geometry = zip(
        x.shape[2:], layer.kernel_size, layer.stride, _padding(layer), layer.dilation,
        strict=True,
    )  # fmt: skip
    for size, kernel, stride, padding, dilation in geometry:
        sizes.append((size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1)
    return sizes


def is_regular(layer: Convolution) -> bool:
    """Whether a primitive can have its padding: of zeros, by numbers."""
    return layer.padding_mode == "zeros" and not isinstance(layer.padding, str)


def _padding(layer: Convolution) -> tuple[int, ...]:
    assert not isinstance(layer.padding, str)
    return layer.padding


def _dtype_of_primitive(layer: Any, x: Tensor) -> torch.dtype | None:
    """What the primitive computes in; None if it can't compute this call."""
    kind, dtype = x.device.type, x.dtype
    if dtype not in _TYPES or kind not in ("cpu", "xpu") or x.numel() == 0:
        return None
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
    elif layer.weight.dtype != dtype:
        return None
    if layer.weight.device != x.device or layer.weight.is_inference():
        return None
    if not may_be_packed(layer):
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


def _adds(other: Tensor | None, dtype: torch.dtype, sizes: list[int]) -> bool:
    """Whether a primitive can add it: another type would be that of the sum."""
    return other is None or (other.dtype == dtype and list(other.shape) == sizes)


def _finished(y: Tensor, other: Tensor | None, activation: Activation) -> Tensor:
    return activation(y if other is None else y + other)


def _linear_on_cpu(
    layers: tuple[nn.Linear, ...],
    x: Tensor,
    other: Tensor | None,
    activation: Activation,
) -> Tensor:
    """The layers' results are side by side."""

    def pack() -> tuple[Tensor, Tensor | None]:
        weight, bias = _joined(layers, x.dtype)
        made: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, None)
        return made, bias

    weight, bias = packed(layers[0], _parameters_of(layers), x.dtype, pack)
    if other is None:
        y: Tensor = torch.ops.mkldnn._linear_pointwise(
            x, weight, bias, *activation.of_mkldnn
        )
        return y
    y = torch.ops.mkldnn._linear_pointwise.binary(x, other, weight, bias, "add")
    return activation(y)


def _linear_on_xpu(
    layers: tuple[nn.Linear, ...],
    x: Tensor,
    other: Tensor | None,
    activation: Activation,
    sizes: list[int],
) -> Tensor:
    rows = x.reshape(-1, x.shape[-1])
    of_weight = [x.shape[-1], sizes[-1]]
    after = activation.name, activation.alpha, activation.beta
    if other is not None:
        other = other.reshape(-1, sizes[-1])

    def pack() -> tuple[Tensor, Tensor | None] | None:
        weight, bias = _joined(layers, x.dtype)
        op = torch.ops.xpurt.pack_product_weight
        made = op(rows, weight.t(), bias, other, of_weight, *after)
        return (made, bias) if _is_packed(made, x) else None

    use = x.dtype, x.device, rows.shape[0], other is None, activation
    found = packed(layers[0], _parameters_of(layers), use, pack)
    if found is None:
        y = F.linear(rows, *_joined(layers, x.dtype))
        return _finished(y, other, activation).reshape(sizes)
    fused = torch.ops.xpurt.fused_product
    result: Tensor = fused(rows, *found, other, of_weight, *after)
    return result.reshape(sizes)


def _parameters_of(layers: tuple[nn.Linear, ...]) -> tuple[Tensor | None, ...]:
    return tuple(each for layer in layers for each in (layer.weight, layer.bias))


def _joined(
    layers: tuple[nn.Linear, ...], dtype: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """The weight and the bias of one layer with the results of all."""
    if len(layers) == 1:
        return _cast(dtype, layers[0].weight, layers[0].bias)
    weights: list[Tensor] = [layer.weight for layer in layers]
    weight = torch.cat(weights)
    biases: list[Tensor] = [
        weight.new_zeros(layer.out_features) if layer.bias is None else layer.bias
        for layer in layers
    ]
    has_bias = any(layer.bias is not None for layer in layers)
    return _cast(dtype, weight, torch.cat(biases) if has_bias else None)


def _convolution_on_cpu(
    layer: Convolution,
    x: Tensor,
    norm: BatchNorm | None,
    other: Tensor | None,
    activation: Activation,
) -> Tensor:
    """Packed weights make the result channels_last, so they are for such images. Others
    would be copied, which takes longer than PyTorch's own convolution."""
    geometry: Any = _padding(layer), layer.stride, layer.dilation, layer.groups
    is_packed = _is_channels_last(x)
    if is_packed and takes_winograd(layer, x):
        return _convolution_by_winograd(layer, x, norm, other, activation)

    def pack() -> tuple[Tensor, Tensor | None]:
        weight, bias = _folded(layer, norm, x.dtype)
        if is_packed:
            weight = torch.ops.mkldnn._reorder_convolution_weight(
                weight, *geometry, x.shape
            )
        return weight, bias

    use = x.dtype, is_packed
    weight, bias = packed(layer, _parameters(layer, norm), use, pack)
    if not is_packed:
        padding, stride, dilation, groups = geometry
        y = torch.convolution(
            x, weight, bias, stride, padding, dilation, False, [0] * len(stride), groups
        )
        return _finished(y, other, activation)
    op = torch.ops.mkldnn._convolution_pointwise
    if other is None:
        y = op(x, weight, bias, *geometry, *activation.of_mkldnn)
    elif layer.groups == 1:
        after = "add", 1.0, *activation.of_mkldnn
        y = op.binary(x, other, weight, bias, *geometry, *after)
    else:  # the op has no primitive with an addition
        y = activation(op(x, weight, bias, *geometry, *NONE.of_mkldnn) + other)
    return y


def _is_channels_last(x: Tensor) -> bool:
    if x.dim() == 3:
        return False
    order = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
    return x.is_contiguous(memory_format=order)


def _convolution_on_xpu(
    layer: Convolution,
    x: Tensor,
    norm: BatchNorm | None,
    other: Tensor | None,
    activation: Activation,
    sizes: list[int],
) -> Tensor:
    format, order = _CONTIGUOUS, torch.contiguous_format
    if x.dim() > 3:
        format = _CHANNELS_LAST
        order = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
    images = x.contiguous(memory_format=order)
    if other is not None:
        other = other.contiguous(memory_format=order)
    if takes_winograd(layer, images):
        y: Tensor = _convolution_by_winograd(layer, images, norm, other, activation)
        return y if images is x else y.contiguous()
    arguments = (
        list(layer.weight.shape), layer.stride, _padding(layer), layer.dilation,
        layer.groups, activation.name, activation.alpha, activation.beta, format, format,
    )  # fmt: skip

    def pack() -> tuple[Tensor, Tensor | None] | None:
        weight, bias = _folded(layer, norm, x.dtype)
        op = torch.ops.xpurt.pack_convolution_weight
        made = op(images, weight, bias, other, *arguments)
        return (made if _is_packed(made, x) else weight), bias

    use = x.dtype, x.device, x.shape, other is None, activation
    weight, bias = packed(layer, _parameters(layer, norm), use, pack)
    fused = torch.ops.xpurt.fused_convolution
    y = fused(images, weight, bias, other, *arguments)
    return y if images is x else y.contiguous()


def _convolution_by_winograd(
    layer: Convolution,
    images: Tensor,
    norm: BatchNorm | None,
    other: Tensor | None,
    activation: Activation,
) -> Tensor:
    """images: in channels_last, as is the result."""

    def pack() -> tuple[Tensor, Tensor | None]:
        weight, bias = _folded(layer, norm, images.dtype)
        return pack_winograd_weight(weight), bias

    weight, bias = packed(layer, _parameters(layer, norm), "winograd", pack)
    if other is not None:
        other = other.contiguous(memory_format=torch.channels_last)
    is_relu = activation == Activation("relu")
    op = torch.ops.xpurt.winograd_conv2d
    y: Tensor = op(images, weight, bias, other, _padding(layer), is_relu)
    return y if is_relu else activation(y)


def _parameters(
    layer: Convolution, norm: BatchNorm | None
) -> tuple[Tensor | None, ...]:
    if norm is None:
        return layer.weight, layer.bias
    return (
        layer.weight, layer.bias, norm.weight, norm.bias, norm.running_mean,
        norm.running_var,
    )  # fmt: skip


def _folded(
    layer: Convolution, norm: BatchNorm | None, dtype: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """The weight and the bias with the norm folded in, which is done in float32."""
    if norm is None:
        return _cast(dtype, layer.weight, layer.bias)
    weight, bias = _cast(torch.float32, layer.weight, layer.bias)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = torch.rsqrt(norm.running_var.float() + norm.eps)
    if norm.weight is not None:
        scale = scale * norm.weight
    shift = -norm.running_mean if bias is None else bias - norm.running_mean
    shift = shift * scale
    if norm.bias is not None:
        shift = shift + norm.bias
    weight = weight * scale.reshape(-1, *[1] * (weight.dim() - 1))
    return _cast(dtype, weight, shift)


def _cast(
    dtype: torch.dtype, weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    return weight.to(dtype), None if bias is None else bias.to(dtype)


def _is_packed(made: Tensor, x: Tensor) -> bool:
    """Whether a primitive takes it, on any device that may compute the op."""
    devices = current_placement().ordinals[x.device.index or 0]
    return made.numel() > 0 and len(devices) == 1
