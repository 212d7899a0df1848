"""The RMS norm (Zhang and Sennrich, Root mean square layer normalization, 2019), where a
model writes it in ops, as the classes of transformers do."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Node
from torch.nn import functional as F

from xpurt.optimization.patterns.graph_calls import (
    arguments,
    dtype_read_of,
    name_of,
    operands,
)
from xpurt.optimization.patterns.pattern import KindOf, Match, Pattern


def rms_norm(
    x: Tensor, weight: Tensor, eps: float, is_float32: bool, is_cast_back: bool
) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight, along the last dimension.

    is_float32: it is computed in float32. is_cast_back: it has the type of x before the
    product with the weight.
    """
    values = x.float() if is_float32 and not is_cast_back else x
    if weight.shape != x.shape[-1:] or not x.is_floating_point():
        return _as_written(x, weight, eps, is_float32, is_cast_back)
    if weight.dtype == values.dtype:
        # Autocast may have it in another type.
        return F.rms_norm(values, weight.shape, weight, eps).to(values.dtype)
    normed = F.rms_norm(values, weight.shape, None, eps).to(values.dtype)
    return weight * normed


def _as_written(
    x: Tensor, weight: Tensor, eps: float, is_float32: bool, is_cast_back: bool
) -> Tensor:
    values = x.float() if is_float32 else x
    values = values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + eps)
    return weight * (values.to(x.dtype) if is_cast_back else values)


def _find(module: nn.Module, node: Node, kind_of: KindOf) -> Match | None:
    for weight, normed in operands(node, "mul"):
        if not isinstance(weight, Node) or weight.op != "get_attr":
            continue
        casts: list[Node] = []
        cast_from = _is_cast_to_type_of(normed)
        if cast_from is not None:
            read, inner = cast_from
            casts.append(normed)
            if normed.args[1] is not read:
                casts.append(normed.args[1])
        else:
            read, inner = None, normed
        for values, scale in operands(inner, "mul"):
            found = _scale(values, scale)
            if found is None:
                continue
            eps, nodes = found
            x, is_float32 = values, False
            if (before := _is_float_of(values)) is not None:
                x, is_float32 = before, True
                nodes = [values, *nodes]
            if not isinstance(x, Node) or (read is not None and read is not x):
                continue
            taken = (*nodes, inner, *reversed(casts), node)
            args = (x, weight, eps, is_float32, read is not None)
            return Match(tuple(taken), rms_norm, args)
    return None


def _is_cast_to_type_of(node: Any) -> tuple[Node, Any] | None:
    """The tensor whose type a value is cast to, and the value."""
    name = name_of(node)
    if name not in ("to", "type_as") or len(node.args) != 2 or node.kwargs:
        return None
    value, other = node.args
    read = dtype_read_of(other) if name == "to" else other
    return None if not isinstance(read, Node) else (read, value)


def _is_float_of(node: Any) -> Any:
    """The value that is cast to float32."""
    if name_of(node) == "float" and len(node.args) == 1:
        return node.args[0]
    if name_of(node) == "to" and node.args[1:] == (torch.float32,) and not node.kwargs:
        return node.args[0]
    return None


def _scale(values: Any, node: Any) -> tuple[float, list[Node]] | None:
    """eps of rsqrt(mean(values^2) + eps), and the nodes."""
    if name_of(node) != "rsqrt" or len(node.args) != 1:
        return None
    for mean, eps in operands(node.args[0], "add"):
        if name_of(mean) != "mean" or not isinstance(eps, float | int):
            continue
        given = arguments(mean, "input", "dim", "keepdim")
        if given is None or given.get("dim") not in (-1, [-1], (-1,)):
            continue
        square = given["input"]
        if given.get("keepdim") is True and _is_square_of(square, values):
            return float(eps), [square, mean, node.args[0], node]
    return None


def _is_square_of(node: Any, values: Any) -> bool:
    if name_of(node) == "square":
        return tuple(node.args) == (values,)
    if name_of(node) == "pow":
        return tuple(node.args) == (values, 2)
    return name_of(node) == "mul" and tuple(node.args) == (values, values)


RMS_NORM = Pattern(
    "RMS norm",
    "weight * (x * rsqrt(mean(x ** 2) + eps))",
    "F.rms_norm(x, weight, eps)",
    _find,
)
