"""The RMS norm (Zhang and Sennrich, Root mean square layer normalization, 2019), where a
model writes it in ops, as the classes of transformers do."""

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.nn import functional as F

from xpurt.optimization.patterns.graph_calls import (
    arguments,
    cast_of,
    dtype_of,
    name_of,
    operands,
)
from xpurt.optimization.patterns.pattern import Match, Parameters, Pattern


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


def _find(node: Node, parameters: Parameters) -> Match | None:
    for weight, normed in operands(node, "mul"):
        if weight not in parameters:
            continue
        back, inner = cast_of(normed), normed
        if back is not None:
            inner, _ = back
        for values, scale in operands(inner, "mul"):
            found = _scale(values, scale)
            if found is None:
                continue
            eps, nodes = found
            x, before = values, cast_of(values)
            if before is not None and before[1] == torch.float32:
                x, nodes = before[0], [values, *nodes]
            if not isinstance(x, Node) or (back and back[1] != dtype_of(x)):
                continue
            taken = (*nodes, inner, *([normed] if back else []), node)
            args = (x, weight, eps, x is not values, back is not None)
            return Match(taken, rms_norm, args, weight)
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
