"""Convolutions, each with what is around it as one primitive."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from xpurt.functional.activations import NONE, Activation
from xpurt.functional.convolutions import (
    CHANNELS_LAST,
    CONTIGUOUS,
    BatchNorm,
    Geometry,
    channels_last,
    folded,
    output_sizes,
)
from xpurt.functional.winograd import pack_winograd_weight, takes_winograd
from xpurt.optimization.packed_weights import packed
from xpurt.optimization.primitives import (
    adds,
    dtype_of_primitive,
    finished,
    in_type,
    is_packed,
)


class _Layer(NamedTuple):
    weight: Tensor  # (out, in / groups, ...)
    bias: Tensor | None
    geometry: Geometry
    norm: BatchNorm | None

    @property
    def parameters(self) -> tuple[Tensor | None, ...]:
        if self.norm is None:
            return self.weight, self.bias
        mean, variance, weight, bias, _ = self.norm
        return self.weight, self.bias, weight, bias, mean, variance

    @property
    def use(self) -> tuple[Any, ...]:
        """What a pack depends on beside the parameters."""
        return self.geometry, None if self.norm is None else self.norm.eps

    def folded(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
        """The weight and the bias with the norm folded in."""
        if self.norm is None:
            return in_type(dtype, self.weight, self.bias)
        return in_type(dtype, *folded(self.weight, self.bias, self.norm))


def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    geometry: Geometry,
    norm: BatchNorm | None = None,
    other: Tensor | None = None,
    activation: Activation = NONE,
) -> Tensor:
    """activation(norm(convolution of x) + other), without gradients.
    x: (batch, channels, ...)."""
    trained = () if norm is None else (norm.weight, norm.bias)
    dtype = dtype_of_primitive(x, weight, bias, *trained)
    if dtype is None or x.dim() != weight.dim():
        y = _as_written(x, weight, bias, geometry)
        if norm is not None:
            y = F.batch_norm(y, *norm[:4], False, 0.0, norm.eps)
        return finished(y, other, activation)
    sizes = output_sizes(x.shape, weight.shape, *geometry[:3])
    if not adds(other, dtype, sizes):
        y = convolution(x, weight, bias, geometry, norm)
        return finished(y, other, activation)
    x, layer = x.to(dtype), _Layer(weight, bias, geometry, norm)
    if x.device.type == "cpu":
        return _on_cpu(layer, x, other, activation)
    return _on_xpu(layer, x, other, activation, sizes)


def _as_written(
    x: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry
) -> Tensor:
    op = (F.conv1d, F.conv2d, F.conv3d)[weight.dim() - 3]
    return op(x, weight, bias, *geometry)


def _on_cpu(
    layer: _Layer, x: Tensor, other: Tensor | None, activation: Activation
) -> Tensor:
    """Packed weights make the result channels_last, so they are for such images. Others
    would be copied, which takes longer than PyTorch's own convolution."""
    stride, padding, dilation, groups = layer.geometry
    geometry = padding, stride, dilation, groups
    order = channels_last(x.dim())
    packs = order is not None and x.is_contiguous(memory_format=order)
    if packs and takes_winograd(layer.weight, layer.geometry, x):
        return _by_winograd(layer, x, other, activation)

    def pack() -> tuple[Tensor, Tensor | None]:
        weight, bias = layer.folded(x.dtype)
        if packs:
            weight = torch.ops.mkldnn._reorder_convolution_weight(
                weight, *geometry, x.shape
            )
        return weight, bias

    weight, bias = packed(layer.parameters, (x.dtype, packs, *layer.use), pack)
    if not packs:
        y = torch.convolution(
            x, weight, bias, stride, padding, dilation, False, [0] * len(stride), groups
        )
        return finished(y, other, activation)
    op = torch.ops.mkldnn._convolution_pointwise
    if other is None:
        y = op(x, weight, bias, *geometry, *activation.of_mkldnn)
        y = activation.after_mkldnn(y)
    elif groups == 1:
        # Of the activations the op applies ReLU alone after an addition.
        is_relu = activation.name == "relu"
        after = "relu" if is_relu else None
        y = op.binary(x, other, weight, bias, *geometry, "add", 1.0, after, [], None)
        y = y if is_relu else activation(y)
    else:  # the op has no primitive with an addition
        y = activation(op(x, weight, bias, *geometry, *NONE.of_mkldnn) + other)
    return y


def _on_xpu(
    layer: _Layer,
    x: Tensor,
    other: Tensor | None,
    activation: Activation,
    sizes: list[int],
) -> Tensor:
    last = channels_last(x.dim())
    format = CONTIGUOUS if last is None else CHANNELS_LAST
    order = torch.contiguous_format if last is None else last
    images = x.contiguous(memory_format=order)
    if other is not None:
        other = other.contiguous(memory_format=order)
    if takes_winograd(layer.weight, layer.geometry, images):
        y: Tensor = _by_winograd(layer, images, other, activation)
        return y if images is x else y.contiguous()
    arguments: tuple[Any, ...] = (
        list(layer.weight.shape), *layer.geometry, activation.name, activation.alpha,
        activation.beta, format, format,
    )  # fmt: skip

    def pack() -> tuple[Tensor, Tensor | None] | None:
        weight, bias = layer.folded(x.dtype)
        op = torch.ops.xpurt.pack_convolution_weight
        made = op(images, weight, bias, other, *arguments)
        return (made if is_packed(made, x) else weight), bias

    use = x.dtype, x.device, x.shape, other is None, activation, *layer.use
    weight, bias = packed(layer.parameters, use, pack)
    fused = torch.ops.xpurt.fused_convolution
    y = fused(images, weight, bias, other, *arguments)
    return y if images is x else y.contiguous()


def _by_winograd(
    layer: _Layer, images: Tensor, other: Tensor | None, activation: Activation
) -> Tensor:
    """images: in channels_last, as is the result."""

    def pack() -> tuple[Tensor, Tensor | None]:
        weight, bias = layer.folded(images.dtype)
        return pack_winograd_weight(weight), bias

    weight, bias = packed(layer.parameters, ("winograd", *layer.use), pack)
    if other is not None:
        other = other.contiguous(memory_format=torch.channels_last)
    is_relu = activation == Activation("relu")
    op = torch.ops.xpurt.winograd_conv2d
    padding = layer.geometry.padding
    y: Tensor = op(images, weight, bias, other, padding, is_relu)
    return y if is_relu else activation(y)
