"""Convolutions in int8, each with the addition and the ReLU after it as one op."""

from typing import Any, Final

import torch
from torch.fx import Node

from xpurt.functional.activations import Activation
from xpurt.optimization.activation_calls import of_call
from xpurt.optimization.patterns.additions import added_to, reader_of
from xpurt.optimization.patterns.graph_calls import arguments, value_of
from xpurt.optimization.patterns.pattern import Match, Parameters, Pattern

_OPERANDS: Final = (
    "x", "weight", "weight_scale", "bias", "x_scale", "x_zero_point", "stride",
    "padding", "dilation", "groups", "relu", "other",
)  # fmt: skip
_OPS: Final = (
    torch.ops.xpurt.int8_convolution,
    torch.ops.xpurt.int8_convolution.default,
)


def _find(node: Node, parameters: Parameters) -> Match | None:
    is_relu = _is_relu(node)
    last: Any = node.args[0] if is_relu else node
    if not is_relu and (after := reader_of(node)) is not None and _is_relu(after):
        return None  # the ReLU ends a longer match
    for one in (last, *getattr(last, "args", ())):
        given = _convolution_of(one)
        if given is None or given["weight"] not in parameters:
            continue
        other = None if one is last else added_to(last, one)
        if one is not last and (other is None or not _is_addend(other, last)):
            continue
        nodes = tuple(dict.fromkeys((one, last, node)))
        if len(nodes) == 1:
            continue
        made = given | {"relu": is_relu, "other": other}
        args = tuple(made[name] for name in _OPERANDS)
        return Match(nodes, _OPS[0], args, given["weight"])
    return None


def _is_relu(node: Node) -> bool:
    return of_call(node) == Activation("relu")


def _convolution_of(node: Any) -> dict[str, Any] | None:
    """The operands of a convolution that nothing follows yet."""
    if not isinstance(node, Node) or node.target not in _OPS:
        return None
    given = arguments(node, *_OPERANDS)
    follows = given is None or given.get("relu") or given.get("other") is not None
    return None if follows else given


def _is_addend(other: Node, addition: Node) -> bool:
    """Whether the op adds it: without a broadcast, in float32."""
    one, result = value_of(other), value_of(addition)
    return (
        one is not None
        and result is not None
        and one.shape == result.shape
        and one.device == result.device
        and one.dtype == result.dtype == torch.float32
    )


INT8_CONVOLUTION = Pattern(
    "int8 convolution + what follows",
    "relu(convolution(x) + other) of a quantized layer",
    "torch.ops.xpurt.int8_convolution with other",
    _find,
)
