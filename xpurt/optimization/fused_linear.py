"""Linear layers, each with what is around it as one primitive."""

import torch
from torch import Tensor
from torch.nn import functional as F

from xpurt.functional.activations import NONE, Activation
from xpurt.functional.panels import (
    ACTIVATIONS,
    pack_panels,
    takes_packed_weight,
    takes_panels,
    takes_rows,
)
from xpurt.optimization.packed_weights import packed
from xpurt.optimization.primitives import (
    adds,
    dtype_of_primitive,
    finished,
    in_type,
    is_packed,
)

# The weight (out, in) and the bias (out,).
Layer = tuple[Tensor, Tensor | None]


def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    other: Tensor | None = None,
    activation: Activation = NONE,
) -> Tensor:
    """activation(F.linear(x, weight, bias) + other), without gradients. x: (..., in);
    other and the result: (..., out)."""
    dtype = dtype_of_primitive(x, weight, bias)
    if dtype is None or x.dim() < 2:
        return finished(F.linear(x, weight, bias), other, activation)
    sizes = [*x.shape[:-1], weight.shape[0]]
    if not adds(other, dtype, sizes):
        return finished(linear(x, weight, bias), other, activation)
    layers = ((weight, bias),)
    if _take_panels(layers, x, dtype):
        return _by_panels(layers, x, other, activation, sizes[-1])
    if _is_row_in_float32(x, dtype):
        return finished(F.linear(x, weight, bias), other, activation)
    x = x.to(dtype)
    if takes_rows(x, weight, dtype):
        return finished(_by_rows(x, weight, bias), other, activation)
    if x.device.type == "cpu":
        return _on_cpu(layers, x, other, activation)
    return _on_xpu(layers, x, other, activation, sizes)


def packed_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """F.linear(x, weight, bias), with a packed weight where that takes less time."""
    if x.dim() > 1 and takes_packed_weight(x, weight):
        return linear(x, weight, bias)
    return F.linear(x, weight, bias)


def joined_linear(x: Tensor, layers: tuple[Layer, ...]) -> Tensor | None:
    """The results of linear layers of one input side by side, as one product without
    gradients; None if that can't be, or takes longer. x: (..., in)."""
    dtypes = {dtype_of_primitive(x, *layer) for layer in layers}
    (dtype, *others) = dtypes
    if dtype is None or others or x.dim() < 2:
        return None
    sizes = [*x.shape[:-1], sum(len(weight) for weight, _ in layers)]
    if _take_panels(layers, x, dtype):
        return _by_panels(layers, x, None, NONE, sizes[-1])
    if _is_row_in_float32(x, dtype) or takes_rows(x, layers[0][0], dtype):
        return None
    x = x.to(dtype)
    if x.device.type == "cpu":
        return _on_cpu(layers, x, None, NONE)
    return _on_xpu(layers, x, None, NONE, sizes)


def _is_row_in_float32(x: Tensor, dtype: torch.dtype) -> bool:
    """Whether PyTorch's product of a matrix and a vector is to be taken. A primitive takes
    1.2 to 1.7 of its time in float32, and 0.6 to 1.0 in bfloat16 (processor time of one
    thread, AMD EPYC, 2026-11-26)."""
    return x.dtype == dtype == torch.float32 and x.numel() == x.shape[-1]


def _take_panels(layers: tuple[Layer, ...], x: Tensor, dtype: torch.dtype) -> bool:
    return dtype == x.dtype and all(takes_panels(x, weight) for weight, _ in layers)


def _by_panels(
    layers: tuple[Layer, ...],
    x: Tensor,
    other: Tensor | None,
    activation: Activation,
    columns: int,
) -> Tensor:
    def pack() -> tuple[Tensor, Tensor | None]:
        weight, bias = _joined(layers, x.dtype)
        return pack_panels(weight), bias

    found = packed(_parameters(layers), ("panels", x.device), pack)
    inside = activation.name in ACTIVATIONS
    op = torch.ops.xpurt.panel_linear.default
    y: Tensor = op(x, *found, other, columns, activation.name if inside else "none")
    return y if inside else activation(y)


def _by_rows(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if weight.dtype == x.dtype and (bias is None or bias.dtype == x.dtype):
        found: tuple[Tensor, Tensor | None] = weight, bias
    else:
        found = packed(
            _parameters(((weight, bias),)),
            ("rows", x.dtype),
            lambda: in_type(x.dtype, weight, bias),
        )
    result: Tensor = torch.ops.xpurt.row_linear(x, *found)
    return result


def _on_cpu(
    layers: tuple[Layer, ...],
    x: Tensor,
    other: Tensor | None,
    activation: Activation,
) -> Tensor:
    """The layers' results are side by side."""

    def pack() -> tuple[Tensor, Tensor | None]:
        weight, bias = _joined(layers, x.dtype)
        made: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight, None)
        return made, bias

    weight, bias = packed(_parameters(layers), x.dtype, pack)
    if other is None:
        y: Tensor = torch.ops.mkldnn._linear_pointwise(
            x, weight, bias, *activation.of_mkldnn
        )
        return activation.after_mkldnn(y)
    y = torch.ops.mkldnn._linear_pointwise.binary(x, other, weight, bias, "add")
    return activation(y)


def _on_xpu(
    layers: tuple[Layer, ...],
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
        return (made, bias) if is_packed(made, x) else None

    use = x.dtype, x.device, rows.shape[0], other is None, activation
    found = packed(_parameters(layers), use, pack)
    if found is None:
        y = F.linear(rows, *_joined(layers, x.dtype))
        return finished(y, other, activation).reshape(sizes)
    fused = torch.ops.xpurt.fused_product
    result: Tensor = fused(rows, *found, other, of_weight, *after)
    return result.reshape(sizes)


def _parameters(layers: tuple[Layer, ...]) -> tuple[Tensor | None, ...]:
    return tuple(each for layer in layers for each in layer)


def _joined(
    layers: tuple[Layer, ...], dtype: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """The weight and the bias of one layer with the results of all."""
    if len(layers) == 1:
        return in_type(dtype, *layers[0])
    weight = torch.cat([weight for weight, _ in layers])
    biases = [weight.new_zeros(len(w)) if bias is None else bias for w, bias in layers]
    has_bias = any(bias is not None for _, bias in layers)
    return in_type(dtype, weight, torch.cat(biases) if has_bias else None)
