"""Additions that follow a layer in a graph."""

import operator
from typing import Any, Final

import torch
from torch.fx import Node

from xpurt.optimization.patterns.graph_calls import value_of

_ADDITIONS: Final = (operator.add, operator.iadd, torch.add, "add", "add_")


def reader_of(node: Node) -> Node | None:
    """The only one."""
    return next(iter(node.users)) if len(node.users) == 1 else None


def added_to(node: Node, one: Node) -> Node | None:
    """The tensor that the node adds to `one`."""
    is_call = node.op in ("call_function", "call_method")
    if not is_call or node.target not in _ADDITIONS or node.kwargs:
        return None
    if len(node.args) != 2 or not all(isinstance(each, Node) for each in node.args):
        return None
    first, second = node.args
    if first is second:
        return None
    if node.target in ("add_", operator.iadd) and first is not one:
        return None  # it writes to what others may read
    other: Any = second if first is one else first
    return other if value_of(other) is not None else None
