"""conv_bn_activation: a convolution, a batch norm with running statistics, and an
activation in one step.

The norm is a part of the convolution: see `functional.convolutions.folded`. The gradients
are those of the plain composition. Its convolution is not kept for them, but computed
again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from xpurt.functional.activations import Trained, trained
from xpurt.functional.convolutions import (
    CHANNELS_LAST,
    BatchNorm,
    by_axis,
    channels_last,
    folded,
    is_channels_last,
    output_sizes,
)
from xpurt.fused_ops.definition import cast_under_autocast, define
from xpurt.fused_ops.operands import (
    computed_in,
    require,
    require_floating,
    require_same_device,
    require_same_type,
    sizes,
)

_OP = "conv_bn_activation"
_SCHEMA = (
    f"{_OP}(Tensor x, Tensor weight, Tensor? bias, Tensor? bn_weight, Tensor? bn_bias, "
    "Tensor running_mean, Tensor running_var, float eps=1e-5, int[] stride=[1], "
    "int[] padding=[0], int[] dilation=[1], int groups=1, str activation='none') "
    "-> Tensor"
)


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """The arguments of the op. Raises ValueError or TypeError if they do not fit."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    bn_weight: Tensor | None
    bn_bias: Tensor | None
    running_mean: Tensor
    running_var: Tensor
    eps: float = 1e-5
    stride: Sequence[int] = (1,)
    padding: Sequence[int] = (0,)
    dilation: Sequence[int] = (1,)
    groups: int = 1
    activation: str = "none"

    def __post_init__(self) -> None:
        x, weight, axes = self.x, self.weight, self.axes
        trained(_OP, self.activation)
        require_floating(_OP, "x", x)
        require_same_device(_OP, x=x, weight=weight, **self._by_channel)
        require_same_type(_OP, x=x, weight=weight, bias=self.bias)
        require(
            1 <= axes <= 3 and x.dim() == weight.dim(),
            f"{_OP} has x (N, in, ...) and a weight (out, in / groups, ...) with 1 to 3 "
            f"dimensions of space; found x {sizes(x)} and a weight {sizes(weight)}",
        )
        require(
            self.groups >= 1
            and x.shape[1] == weight.shape[1] * self.groups
            and weight.shape[0] % self.groups == 0,
            f"{_OP} of x {sizes(x)} in {self.groups} groups does not fit a weight "
            f"{sizes(weight)}",
        )
        for name, each in self._by_channel.items():
            if each is not None:
                require_floating(_OP, name, each)
                require(
                    each.dim() == 1 and each.shape[0] == weight.shape[0],
                    f"{_OP} with a weight {sizes(weight)} has a {name} "
                    f"[{weight.shape[0]}]; found {sizes(each)}",
                )
        for name, least in (("stride", 1), ("padding", 0), ("dilation", 1)):
            given = getattr(self, name)
            require(
                len(given) in (1, axes) and all(each >= least for each in given),
                f"{_OP} has a {name} of one number or of {axes}, each at least {least}; "
                f"found {list(given)}",
            )
        require(
            all(size >= 1 for size in self.output_sizes[2:]),
            f"{_OP} has a window that is larger than x {sizes(x)} with its padding; found "
            f"a weight {sizes(weight)}, a padding {list(self.padding)} and a dilation "
            f"{list(self.dilation)}",
        )

    @property
    def _by_channel(self) -> dict[str, Tensor | None]:
        return {
            name: getattr(self, name)
            for name in ("bias", "bn_weight", "bn_bias", "running_mean", "running_var")
        }

    @property
    def axes(self) -> int:
        return self.weight.dim() - 2

    @property
    def windows(self) -> tuple[list[int], list[int], list[int]]:
        """stride, padding and dilation, one number per axis."""
        stride, padding, dilation = (
            by_axis(each, self.axes)
            for each in (self.stride, self.padding, self.dilation)
        )
        return stride, padding, dilation

    @property
    def output_sizes(self) -> list[int]:
        return output_sizes(self.x.shape, self.weight.shape, *self.windows)

    @property
    def after(self) -> Trained:
        return trained(_OP, self.activation)

    @property
    def format(self) -> torch.memory_format:
        """Of the result: that of x."""
        last = channels_last(self.x.dim())
        return last if last and is_channels_last(self.x) else torch.contiguous_format

    @property
    def norm(self) -> BatchNorm:
        parameters = self.bn_weight, self.bn_bias
        return BatchNorm(self.running_mean, self.running_var, *parameters, self.eps)

    def folded(self) -> tuple[Tensor, Tensor]:
        """The weight and the bias of the convolution that includes the norm."""
        weight, bias = folded(self.weight, self.bias, self.norm)
        return weight.to(self.weight.dtype), bias.to(self.weight.dtype)

    def convolution(self, weight: Tensor, bias: Tensor | None) -> Tensor:
        zeros = [0] * self.axes
        made: Tensor = torch.ops.aten.convolution(
            self.x, weight, bias, *self.windows, False, zeros, self.groups
        )
        return made.contiguous(memory_format=self.format)

    def per_channel(self, values: Tensor) -> Tensor:
        return values.view(-1, *[1] * self.axes)


def _by_ops(*arguments: Any) -> Tensor:
    layer = _Layer(*arguments)
    return layer.after.in_place(layer.convolution(*layer.folded()))


def _on_xpu(*arguments: Any) -> Tensor:
    layer = _Layer(*arguments)
    # In other formats oneDNN reorders the images, and halves are slower in its primitive
    # with an activation: 1.19 and 1.23 of the processor time of two ops, but 0.83 here (silu,
    # one thread of an AMD EPYC, 2026-11-26). It has no primitive of empty tensors.
    pays = (
        layer.after.by_primitive
        and layer.x.dtype == torch.float32
        and layer.format != torch.contiguous_format
        and layer.x.numel()
        and layer.weight.numel()
    )
    if not pays:
        return _by_ops(*arguments)
    made: Tensor = torch.ops.xpurt.fused_convolution(
        layer.x,
        *layer.folded(),
        None,
        list(layer.weight.shape),
        *layer.windows,
        layer.groups,
        layer.activation,
        0.0,
        0.0,
        *(CHANNELS_LAST, CHANNELS_LAST),
    )
    return made


def _fake(*arguments: Any) -> Tensor:
    layer = _Layer(*arguments)
    return torch.empty(
        layer.output_sizes,
        dtype=layer.x.dtype,
        device=layer.x.device,
        memory_format=layer.format,
    )


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    layer = _Layer(*inputs)
    ctx.rest = inputs[7:]
    ctx.save_for_backward(*inputs[:7], output if layer.after.by_result else None)


def _gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    *tensors, output = ctx.saved_tensors
    layer = _Layer(*tensors, *ctx.rest)
    to_x, to_weight, to_bias, to_bn_weight, to_bn_bias, *_ = ctx.needs_input_grad
    scale = layer.norm.scale(computed_in(layer.weight.dtype))
    values, before = None, grad
    if output is None or to_bn_weight:
        values = layer.convolution(layer.weight, layer.bias)
        values = values - layer.per_channel(layer.running_mean)
    if output is not None:
        before = layer.after.gradient(grad, output)
    elif values is not None:
        normed = values * layer.per_channel(scale)
        if layer.bn_bias is not None:
            normed = normed + layer.per_channel(layer.bn_bias)
        before = layer.after.gradient(grad, normed.to(grad.dtype))
    others = [d for d in range(grad.dim()) if d != 1]
    of_bn_weight = of_bn_bias = None
    if layer.bn_weight is not None and to_bn_weight and values is not None:
        unit = torch.rsqrt(layer.running_var.to(scale.dtype) + layer.eps)
        of_bn_weight = ((before * values).sum(others) * unit).to(layer.bn_weight.dtype)
    if layer.bn_bias is not None and to_bn_bias:
        of_bn_bias = before.sum(others).to(layer.bn_bias.dtype)
    found = torch.ops.aten.convolution_backward(
        (before * layer.per_channel(scale)).to(grad.dtype),
        layer.x,
        layer.weight,
        None if layer.bias is None else [layer.weight.shape[0]],
        *layer.windows,
        False,
        [0] * layer.axes,
        layer.groups,
        [to_x, to_weight, to_bias],
    )
    return (*found, of_bn_weight, of_bn_bias, *[None] * (2 + len(ctx.rest)))


def define_op() -> None:
    define(
        _SCHEMA,
        cpu=_by_ops,
        xpu=_on_xpu,
        fake=_fake,
        save=_save,
        gradient=_gradient,
    )
    cast_under_autocast(_OP, (0, 1, 2))
