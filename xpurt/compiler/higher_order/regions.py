"""Regions of a graph, which `torch.compiler.nested_compile_region` makes.

Note [Regions of programs that train]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Inductor compiles a region once for all of its calls. With gradients its code is wrong in
two ways, for CPU tensors, too. A region returns views of its operands that are saved for
backward, and the graph around it, which does not know them for views, writes to the
operands. And a backward graph may write to operands that nothing reads later, by their
positions; Inductor takes these for positions of a region's operands, too. So a joint
graph of xpu tensors has the ops of its regions, and compiles as long as without regions.
"""

import operator
from typing import Any, Final

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule, Node

from xpurt.compiler.graph_nodes import copy_before

_CALL: Final = torch.ops.higher_order.invoke_subgraph


def inline(joint: GraphModule) -> None:
    """Replaces the calls of regions by their ops."""
    graph = joint.graph
    while calls := graph.find_nodes(op="call_function", target=_CALL):
        for call in calls:
            _inline(joint, call)
        graph.eliminate_dead_code()
        joint.recompile()


def _inline(owner: GraphModule, call: Node) -> None:
    region: Any = call.args[0]
    first = call.prev
    ops = getattr(owner, str(region.target))
    results = copy_before(call, owner, ops, call.args[2:])
    for user in list(call.users):
        assert user.target is operator.getitem
        position: Any = user.args[1]
        user.replace_all_uses_with(results[position])
        owner.graph.erase_node(user)
    made = first.next
    while made is not call:
        if made.op == "call_function":
            _describe(made)
        made = made.next
    owner.graph.erase_node(call)


def _describe(node: Node) -> None:
    """The value of a copied node, whose storage is that of this call."""
    value: Any = node.meta.get("val")
    if isinstance(value, FakeTensor):
        args, kwargs = torch.fx.node.map_arg(
            (node.args, node.kwargs), lambda each: each.meta["val"]
        )
        target: Any = node.target
        with value.fake_mode, enable_python_dispatcher():
            node.meta["val"] = target(*args, **kwargs)
