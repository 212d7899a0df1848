"""What a quantized model computes, by ordinary ops of PyTorch: the definition of its
layers, from the weights that they have."""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from xpurt.quantization.layers import (
    Int4WeightLinear,
    Int8Convolution,
    Int8Linear,
    QuantizedLayer,
)
from xpurt.quantization.model import with_layers

__all__ = ["QuantizedLayer", "in_plain_ops", "weight_of"]

_CONVOLVE: Any = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}


def in_plain_ops(model: nn.Module) -> nn.Module:
    """A copy of a quantized model, whose quantized layers are replaced. It can be
    converted to float64."""
    model = copy.deepcopy(model)
    made = {
        id(each): _plain(each)
        for each in model.modules()
        if isinstance(each, QuantizedLayer)
    }
    return with_layers(model, made)  # type: ignore[no-any-return]


def _plain(layer: QuantizedLayer) -> nn.Module:
    if isinstance(layer, Int8Linear | Int8Convolution):
        return _WithActivations(layer)
    return _WeightOnly(layer)


def weight_of(layer: QuantizedLayer) -> Tensor:
    """The weight that the integers stand for, in float32."""
    values, scale = layer.quantized_weight, layer.weight_scale
    if isinstance(layer, Int4WeightLinear):
        grouped = values.view(*scale.shape, -1)
        values = torch.cat([grouped & 15, grouped >> 4], 2)
        made = values * scale.unsqueeze(2) + layer.weight_minimum.unsqueeze(2)
        return made.flatten(1)
    return values * scale.view(-1, *[1] * (values.dim() - 1))


class _WeightOnly(nn.Module):
    weight: Tensor
    bias: Tensor | None

    def __init__(self, layer: QuantizedLayer) -> None:
        super().__init__()
        self.register_buffer("weight", weight_of(layer))
        self.register_buffer("bias", layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x.to(self.weight.dtype), self.weight, self.bias).to(x.dtype)


class _WithActivations(nn.Module):
    """Integers of activations are those of float32 also in a run in float64."""

    integers: Tensor
    scale: Tensor
    bias: Tensor | None

    def __init__(self, layer: Int8Linear | Int8Convolution) -> None:
        super().__init__()
        self.layer = (layer,)  # not as a child, whose buffers would be converted
        self.register_buffer("integers", layer.quantized_weight.float())
        self.register_buffer("scale", layer.weight_scale)
        self.register_buffer("bias", layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        (layer,) = self.layer
        linear = isinstance(layer, Int8Linear)
        with torch._C.DisableTorchFunction():
            values, step = _quantized(x.detach().float(), layer)
        values, step = (each.to(self.integers.dtype) for each in (values, step))
        if isinstance(layer, Int8Linear):
            made = F.linear(values, self.integers)
        else:
            single = x.dim() < self.integers.dim()
            made = _CONVOLVE[self.integers.dim()](
                values.unsqueeze(0) if single else values,
                self.integers,
                None,
                layer.stride,
                layer.padding,
                layer.dilation,
                layer.groups,
            )
            made = made.squeeze(0) if single else made
        channels = [-1] if linear else [-1, *[1] * (self.integers.dim() - 2)]
        made = made * (self.scale.view(channels) * step)
        if self.bias is not None:
            made = made + self.bias.view(channels)
        if isinstance(layer, Int8Convolution) and layer.relu:
            made = F.relu(made)
        return made.to(x.dtype)


def _quantized(x: Tensor, layer: Int8Linear | Int8Convolution) -> tuple[Tensor, Tensor]:
    """Activations as integers, and the step between them."""
    if x.numel() == 0:
        return x, x.new_ones(1)
    if layer.x_scale is not None:
        assert layer.x_zero_point is not None
        return _between(x, layer.x_scale, layer.x_zero_point.float())
    if isinstance(layer, Int8Linear):
        step = x.abs().amax(-1, keepdim=True) / 127
        return (x * _inverse(step)).round().clamp(-128, 127), step
    low, high = x.amin().clamp(max=0), x.amax().clamp(min=0)
    step = torch.where(high == low, 1.0, (high - low) / 255)
    return _between(x, step, (-low / step).round())


def _between(x: Tensor, step: Tensor, zero: Tensor) -> tuple[Tensor, Tensor]:
    return ((x * _inverse(step)).round() + zero).clamp(0, 255) - zero, step


def _inverse(step: Tensor) -> Tensor:
    inverse = step.reciprocal()
    return torch.where(inverse.isfinite() & (step > 0), inverse, 0.0)
