"""The modules that replace linear and convolution layers."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from xpurt.quantization.weights import int4_in_groups, int8_per_channel

Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d


class QuantizedLayer(nn.Module):
    """A layer for inference, whose tensors are buffers.

    The buffers keep their types: `Module.to(dtype)`, `half()` and the like move them,
    and change the type of other modules only. The result of a layer has the type of its
    input.
    """

    quantized_weight: Tensor
    weight_scale: Tensor
    bias: Tensor | None

    def _apply(
        self, fn: Callable[[Tensor], Tensor], recurse: bool = True
    ) -> "QuantizedLayer":
        for name, buffer in self._buffers.items():
            if buffer is None:
                continue
            applied = fn(buffer)
            same = applied.dtype == buffer.dtype
            self._buffers[name] = applied if same else buffer.to(applied.device)
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "weight":
            raise AttributeError(
                f"{type(self).__name__} has no `weight`: it has `quantized_weight` and "
                "`weight_scale`. A model that reads the weight of a layer needs that "
                "layer as it is: name it in quantize(skip=...)."
            )
        return super().__getattr__(name)

    def _keep_bias(self, layer: nn.Linear | Convolution) -> None:
        bias = None if layer.bias is None else layer.bias.detach().float().clone()
        self.register_buffer("bias", bias)

    def _keep_int8(self, layer: nn.Linear | Convolution) -> None:
        """The weight with a scale per output channel, and the bias."""
        values, scale = int8_per_channel(layer.weight)
        self.register_buffer("quantized_weight", values)
        self.register_buffer("weight_scale", scale)
        self._keep_bias(layer)

    def _keep_activations(
        self, scale: Tensor | None, zero_point: Tensor | None
    ) -> None:
        self.register_buffer("x_scale", scale)
        self.register_buffer("x_zero_point", zero_point)


class Int8Linear(QuantizedLayer):
    """A linear layer with int8 weights and activations.

    x_scale, x_zero_point: of the activations, from calibration; without them each token,
    a row of the input, has a scale of its own.
    """

    x_scale: Tensor | None
    x_zero_point: Tensor | None

    def __init__(
        self,
        layer: nn.Linear,
        x_scale: Tensor | None = None,
        x_zero_point: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self._keep_int8(layer)
        self._keep_activations(x_scale, x_zero_point)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = torch.ops.xpurt.int8_linear(
            x,
            self.quantized_weight,
            self.weight_scale,
            self.bias,
            self.x_scale,
            self.x_zero_point,
        )
        return result

    def extra_repr(self) -> str:
        activations = "dynamic" if self.x_scale is None else "static"
        return f"{self.in_features}, {self.out_features}, activations={activations}"


class Int8Convolution(QuantizedLayer):
    """A convolution with int8 weights and activations, along 1, 2 or 3 dimensions.

    x_scale, x_zero_point: of the activations, from calibration; without them each call
        has a scale for its whole input.
    relu: negative results become 0.
    """

    x_scale: Tensor | None
    x_zero_point: Tensor | None

    def __init__(
        self,
        layer: Convolution,
        x_scale: Tensor | None = None,
        x_zero_point: Tensor | None = None,
        *,
        relu: bool = False,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = layer.in_channels, layer.out_channels
        self.kernel_size, self.stride = layer.kernel_size, layer.stride
        self.padding, self.dilation = padding_of(layer), layer.dilation
        self.groups, self.relu = layer.groups, relu
        self._keep_int8(layer)
        self._keep_activations(x_scale, x_zero_point)

    def forward(self, x: Tensor) -> Tensor:
        # As of PyTorch's layers, the dimension of the batch may be missing.
        single = x.dim() == len(self.kernel_size) + 1
        result: Tensor = torch.ops.xpurt.int8_convolution(
            x.unsqueeze(0) if single else x,
            self.quantized_weight,
            self.weight_scale,
            self.bias,
            self.x_scale,
            self.x_zero_point,
            self.stride,
            self.padding,
            self.dilation,
            self.groups,
            self.relu,
        )
        return result.squeeze(0) if single else result

    def extra_repr(self) -> str:
        activations = "dynamic" if self.x_scale is None else "static"
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, padding={self.padding}, relu={self.relu}, "
            f"activations={activations}"
        )


def padding_of(layer: Convolution) -> tuple[int, ...]:
    """The zeros on each side along each dimension.

    Raises ValueError for padding "same" that differs between the sides.
    """
    if not isinstance(layer.padding, str):
        return tuple(layer.padding)
    if layer.padding == "valid":
        return (0,) * len(layer.kernel_size)
    both = [
        spread * (size - 1)
        for spread, size in zip(layer.dilation, layer.kernel_size, strict=True)
    ]
    if any(zeros % 2 for zeros in both):
        raise ValueError('its padding "same" differs between the sides')
    return tuple(zeros // 2 for zeros in both)


class Int8WeightLinear(QuantizedLayer):
    """A linear layer with int8 weights; activations are as they are."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self._keep_int8(layer)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = torch.ops.xpurt.int8_weight_linear(
            x, self.quantized_weight, self.weight_scale, self.bias
        )
        return result

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}"


class Int4WeightLinear(QuantizedLayer):
    """A linear layer with weights of 4 bits, in groups of `group_size` inputs."""

    weight_minimum: Tensor

    def __init__(self, layer: nn.Linear, group_size: int) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.group_size = group_size
        values, scale, minimum = int4_in_groups(layer.weight, group_size)
        self.register_buffer("quantized_weight", values)
        self.register_buffer("weight_scale", scale)
        self.register_buffer("weight_minimum", minimum)
        self._keep_bias(layer)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = torch.ops.xpurt.int4_weight_linear(
            x,
            self.quantized_weight,
            self.weight_scale,
            self.weight_minimum,
            self.bias,
        )
        return result

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, group_size={self.group_size}"
