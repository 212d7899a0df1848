"""What follows a convolution or a product in a graph, and can be computed with it.

An activation is a graph of its own: Inductor's decompositions have replaced it by ops on
elements. So a pattern is traced with the same decompositions, and found again in the
program's graph by its structure.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from xpurt.functional.activations import FUNCTIONS, NONE, Activation

_ADD = torch.ops.aten.add.Tensor


@dataclass(frozen=True, slots=True)
class Epilogue:
    """`last`: the node whose value the fused op computes. `other`: the node that is added
    first."""

    last: Node
    other: Node | None = None
    activation: Activation = NONE


def epilogue_of(node: Node, activations: Collection[str] | None = None) -> Epilogue:
    """The longest epilogue of a node. No other node may read what is between.
    activations: the names of those that can be part of it; by default all."""
    other, last = _added(node), node
    if other is not None:
        (last,) = node.users
    dtype = node.meta["val"].dtype
    for pattern in _patterns(dtype):
        if activations is not None and pattern.activation.name not in activations:
            continue
        end = _match(pattern.graph, last)
        if end is not None:
            return Epilogue(end, other, pattern.activation)
    return Epilogue(last, other)


def _added(node: Node) -> Node | None:
    """What the one user of a node adds to it, if it has the same sizes and dtype."""
    if len(node.users) != 1:
        return None
    (user,) = node.users
    if user.target is not _ADD or user.kwargs or len(user.args) != 2:
        return None
    one, two = user.args
    other = two if one is node else one
    if not isinstance(other, Node) or other is node:
        return None
    if other.target is node.target and node < other:
        return None  # the later one of two is computed with the addition
    value, wanted = other.meta.get("val"), node.meta["val"]
    same = (
        isinstance(value, Tensor)
        and value.size() == wanted.size()
        and value.dtype == wanted.dtype
        and value.device == wanted.device
    )
    return other if same else None


@dataclass(frozen=True, slots=True)
class _Pattern:
    activation: Activation
    graph: GraphModule


@cache
def _patterns(dtype: torch.dtype) -> list[_Pattern]:
    activations = (
        Activation(each.name, *numbers)
        for each in FUNCTIONS.values()
        for numbers in each.usual
    )
    return [
        _Pattern(each, _traced(each, dtype)) for each in activations if each != NONE
    ]


def _traced(activation: Activation, dtype: torch.dtype) -> GraphModule:
    from torch._inductor.decomposition import select_decomp_table

    with torch.no_grad():
        trace = make_fx(
            lambda x: activation(x), decomposition_table=select_decomp_table()
        )
        made: GraphModule = trace(torch.empty(2, 2, dtype=dtype))
    return made


def _match(pattern: GraphModule, start: Node) -> Node | None:
    """The node that computes the pattern's result from `start`; None if there is none,
    or if other nodes read a value between."""
    found: dict[Node, Node] = {}
    for each in pattern.graph.nodes:
        if each.op == "placeholder":
            found[each] = start
        elif each.op == "output":
            (result,) = pytree.tree_leaves(each.args)
            end = found[result]
            inside = set(found.values()) - {end}
            readers = {user for node in inside for user in node.users}
            return end if readers <= set(found.values()) else None
        else:
            taken = set(found.values())
            same = [
                node
                for node in _candidates(each, found)
                if node not in taken and _computes(node, each, found)
            ]
            if not same:
                return None
            found[each] = same[0]
    return None


def _candidates(each: Node, found: dict[Node, Node]) -> Iterator[Node]:
    for needed in each.all_input_nodes:
        yield from found[needed].users


def _computes(node: Node, wanted: Node, found: dict[Node, Node]) -> bool:
    def mapped(value: Any) -> Any:
        return found.get(value, value) if isinstance(value, Node) else value

    if node.target is not wanted.target:
        return False
    arguments = pytree.tree_map(mapped, (wanted.args, wanted.kwargs))
    given = (node.args, node.kwargs)
    if arguments == given:
        return True
    swapped = (tuple(reversed(node.args)), node.kwargs)
    commutes = node.target in (_ADD, torch.ops.aten.mul.Tensor)
    return commutes and arguments == swapped
