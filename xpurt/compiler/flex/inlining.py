"""A node of a traced graph becomes the nodes of a function."""

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._dispatch.python import enable_python_dispatcher
from torch._inductor.decomposition import select_decomp_table
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from xpurt.compiler.flex.scores import precise
from xpurt.compiler.graph_nodes import copy_before


def inline(owner: GraphModule, node: Node, function: Callable[..., Any]) -> None:
    """Replaces a node with several results by the nodes that `function` is traced to.

    It gets the arguments of the node, with graph modules in place of their nodes, and
    the keyword `wanted`: which of its results are used. Its results are a list; where
    the node has a tuple of results as its last result, the list has them behind the
    others. They get the types and the layouts that the node's have.
    """
    graph = owner.graph
    readers = _readers(node)
    values = pytree.tree_leaves(node.meta["val"], is_leaf=lambda each: each is None)
    leaves, form = pytree.tree_flatten(node.args)
    operands = [
        each for each in leaves if isinstance(each, Node) and each.op != "get_attr"
    ]
    operands = list(dict.fromkeys(operands))

    def filled(given: tuple[Any, ...]) -> Any:
        places = dict(zip(operands, given, strict=True))
        made = [_value(owner, each, places) for each in leaves]
        return pytree.tree_unflatten(made, form)

    def run(*given: Any) -> list[Any]:
        found = function(
            *filled(given), wanted=[i in readers for i in range(len(values))]
        )
        return [
            _like(each, like) if i in readers else None
            for i, (each, like) in enumerate(zip(found, values, strict=True))
        ]

    first: Any = next(each for each in values if isinstance(each, Tensor))
    with first.fake_mode, enable_python_dispatcher(), torch.no_grad():
        traced = make_fx(run, _decompositions(), tracing_mode="real")(
            *(each.meta["val"] for each in operands)
        )
    traced.graph.eliminate_dead_code()
    results = copy_before(node, owner, traced, operands)
    for i, nodes in readers.items():
        for each in nodes:
            each.replace_all_uses_with(results[i])
            graph.erase_node(each)
    for each in [*node.users, node]:
        graph.erase_node(each)


def _decompositions() -> dict[Any, Any]:
    scatter = torch.ops.flex_lib.zeros_and_scatter.default
    return {**select_decomp_table(), scatter: _zeros_and_scatter}


def _zeros_and_scatter(shape: list[int], indices: list[Tensor], values: Tensor) -> Any:
    """Sums of values, in float32, by their indices. Dimensions along which no index
    changes are summed first: Inductor's code for the CPU cannot add a vector to one
    place."""
    found = precise(values)
    for dim in reversed(range(values.dim())):
        if all(each.stride(dim) == 0 for each in indices):
            found = found.sum(dim)
            indices = [each.select(dim, 0) for each in indices]
    zeros = torch.zeros(shape, dtype=found.dtype, device=values.device)
    made = torch.ops.aten.index_put(zeros, indices, found, accumulate=True)
    return made.to(values.dtype)


def _readers(node: Node) -> dict[int, list[Node]]:
    """The nodes that take each of the results, by its position."""
    found: dict[int, list[Node]] = {}
    values = node.meta["val"]
    for user in node.users:
        assert user.target is operator.getitem
        i: Any = user.args[1]
        if not isinstance(values[i], tuple):
            found.setdefault(i, []).append(user)
            continue
        for inner in user.users:
            j: Any = inner.args[1]
            found.setdefault(i + j, []).append(inner)
    return {i: nodes for i, nodes in found.items() if any(each.users for each in nodes)}


def _value(owner: GraphModule, leaf: Any, places: dict[Node, Any]) -> Any:
    if not isinstance(leaf, Node):
        return leaf
    return places[leaf] if leaf in places else getattr(owner, str(leaf.target))


def _like(found: Tensor, like: Tensor) -> Tensor:
    found = found.to(like.dtype)
    if found.stride() != like.stride():
        found = torch.ops.prims.inductor_force_stride_order(found, like.stride())
    return found
