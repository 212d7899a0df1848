"""Nodes that a pass adds to a traced graph, and calls of ops while it does."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.fx import Graph, GraphModule, Node


def call(graph: Graph, target: Any, *args: Any, **kwargs: Any) -> Node:
    """A new node with its value."""
    node = graph.call_function(target, args, kwargs)
    args, kwargs = torch.fx.node.map_arg((args, kwargs), lambda each: each.meta["val"])
    mode = next(each.meta["val"] for each in node.all_input_nodes).fake_mode
    with mode:
        node.meta["val"] = target(*args, **kwargs)
    return node


def constant(graph: GraphModule, name: str, value: Tensor, like: Node) -> Node:
    """A new node that is a constant of the graph. like: a node with a value."""
    # Inductor's cache on disk keeps its name, and no elements.
    value._is_frozen_param = True  # type: ignore[attr-defined]
    graph.register_buffer(name, value)
    node = graph.graph.get_attr(name)
    mode = like.meta["val"].fake_mode
    node.meta["val"] = mode.from_tensor(value, static_shapes=True)
    return node


def copy_before(
    node: Node, owner: GraphModule, other: GraphModule, operands: Sequence[Any]
) -> list[Any]:
    """Copies the nodes of another graph, called with these operands, before a node of
    `owner`. Returns its results."""
    inputs = other.graph.find_nodes(op="placeholder")
    copied: dict[Node, Any] = dict(zip(inputs, operands, strict=True))
    with owner.graph.inserting_before(node):
        for each in other.graph.nodes:
            if each.op == "output":
                return list(torch.fx.node.map_arg(each.args[0], copied.__getitem__))
            if each.op == "placeholder":
                continue
            copied[each] = made = owner.graph.node_copy(each, copied.__getitem__)
            if each.op == "get_attr":
                made.target = _fresh(owner, str(each.target))
                setattr(owner, made.target, getattr(other, str(each.target)))
    raise AssertionError("a graph has an output")


def _fresh(owner: GraphModule, name: str) -> str:
    count = 0
    while hasattr(owner, f"{name}_{count}"):
        count += 1
    return f"{name}_{count}"


def call_now(op: Any, *args: Any) -> Any:
    """Calls an op while a graph is compiled. A fake tensor becomes one of its size,
    dtype and device, without memory for its elements."""

    def real(value: Any) -> Any:
        if not isinstance(value, FakeTensor):
            return value
        made = torch.empty(1, dtype=value.dtype, device=value.device)
        return made.expand([int(size) for size in value.size()])

    with unset_fake_temporarily():
        return op(*(real(each) for each in args))


def complete(graph: GraphModule, inputs: Sequence[Any]) -> None:
    """Removes nodes that are not used any more, and checks the changed graph."""
    from torch._inductor.compile_fx import fake_tensor_prop

    graph.graph.eliminate_dead_code()
    graph.graph.lint()
    graph.recompile()
    fake_tensor_prop(graph, list(inputs), True)
