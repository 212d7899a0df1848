"""Calls of activations in a graph."""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch.fx import Node
from torch.nn import functional as F

from xpurt.functional.activations import Activation
from xpurt.optimization.patterns.graph_calls import arguments


def of_call(node: Node) -> Activation | None:
    """The activation that a node applies to its first argument; None if it is none."""
    target: Any = node.target
    if node.op not in ("call_function", "call_method") or target not in _CALLS:
        return None
    names, activation = _CALLS[target]
    given = arguments(node, "input", *names)
    if given is None:
        return None
    x, is_inplace = given.pop("input", None), given.pop("inplace", False)
    if not isinstance(x, Node) or type(is_inplace) is not bool:
        return None
    if any(isinstance(each, Node) for each in given.values()):
        return None
    return activation(**given)


def _named(name: str) -> tuple[tuple[str, ...], Callable[..., Activation]]:
    return ("inplace",), lambda: Activation(name)


def _clamp(min_val: float = -1.0, max_val: float = 1.0) -> Activation:
    return Activation("clamp", min_val, max_val)


def _leaky_relu(negative_slope: float = 0.01) -> Activation:
    return Activation("leaky_relu", negative_slope)


def _gelu(approximate: str = "none") -> Activation:
    return Activation("gelu" if approximate == "none" else "gelu_tanh")


# The names of the arguments after the tensor, and what makes the activation of them.
_CALLS: Final[dict[Any, tuple[tuple[str, ...], Callable[..., Activation]]]] = {
    **dict.fromkeys(
        (F.relu, F.relu_, torch.relu, torch.relu_, "relu", "relu_"), _named("relu")
    ),
    **dict.fromkeys((F.sigmoid, torch.sigmoid, "sigmoid"), _named("sigmoid")),
    **dict.fromkeys((F.tanh, torch.tanh, "tanh"), _named("tanh")),
    F.silu: _named("silu"),
    F.hardswish: _named("hardswish"),
    F.relu6: (("inplace",), lambda: Activation("clamp", 0.0, 6.0)),
    F.hardtanh: (("min_val", "max_val", "inplace"), _clamp),
    F.leaky_relu: (("negative_slope", "inplace"), _leaky_relu),
    F.elu: (("alpha", "inplace"), lambda alpha=1.0: Activation("elu", alpha)),
    F.gelu: (("approximate",), _gelu),
}
