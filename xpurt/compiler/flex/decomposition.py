"""Calls of `flex_attention` in a traced graph become the ops that they consist of.

Note [flex_attention of compiled programs]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
PyTorch keeps the call and its gradient as one node each, with graphs of the functions of
scores and of masks. Inductor has Triton's kernels for them, and for CPU tensors one C++
kernel, which gives neither logarithms nor gradients. So in code for the host the kernel
of C++ computes what it can, and everything else is decomposed, after AOTAutograd has
divided forward from backward: before, scores would be saved for the backward graph. The
backward graph computes its scores again and takes no logarithms of the forward graph,
which the C++ kernel could not give.
"""

import operator
from typing import Any, Final

import torch
from torch.fx import GraphModule, Node

from xpurt.compiler.flex import calls
from xpurt.compiler.flex.inlining import inline

_FORWARD: Final = torch.ops.higher_order.flex_attention
_BACKWARD: Final = torch.ops.higher_order.flex_attention_backward
_LOGARITHMS: Final = 4  # the position among the backward call's arguments
_OPTIONS: Final = 6  # that of the kernel's options among the forward call's


def leave_logarithms(joint: GraphModule) -> None:
    """Makes backward calls of a joint graph depend on no logarithms."""
    for module in _graph_modules(joint):
        for node in module.graph.find_nodes(op="call_function", target=_BACKWARD):
            given = list(node.args)
            given[_LOGARITHMS] = None
            node.args = tuple(given)


def decompose(graph: GraphModule, *, for_host: bool) -> None:
    """Decomposes the calls of a graph, but for those that Inductor's kernel for the CPU
    computes in code for the host."""
    for module in _graph_modules(graph):
        find = module.graph.find_nodes
        found: list[tuple[Node, Any]] = [
            (node, calls.attended)
            for node in find(op="call_function", target=_FORWARD)
            if not (for_host and _leave_to_cpp(node))
        ]
        found += [
            (node, calls.differentiated)
            for node in find(op="call_function", target=_BACKWARD)
        ]
        for node, function in found:
            inline(module, node, function)
        if found:
            module.graph.eliminate_dead_code()
            module.graph.lint()
            module.recompile()


def _leave_to_cpp(node: Node) -> bool:
    """Makes a call one that Inductor's kernel for the CPU computes, if it can."""
    from torch._inductor.kernel.flex.flex_cpu import check_cpu_supported

    out = {each.args[1] for each in node.users if each.users}
    query, key, value = (each.meta["val"] for each in node.args[:3])  # type: ignore[union-attr]
    types = {each.dtype for each in (query, key, value)}
    can = (
        all(each.target is operator.getitem for each in node.users)
        and out <= {0}
        and len(types) == 1
        and types <= {torch.float32, torch.bfloat16, torch.float16}
        and query.shape[0] == key.shape[0]
        and check_cpu_supported()  # type: ignore[no-untyped-call]
    )
    if can:
        options: Any = node.args[_OPTIONS]
        given = list(node.args)
        given[_OPTIONS] = {**options, "OUTPUT_LOGSUMEXP": False, "OUTPUT_MAX": False}
        node.args = tuple(given)
        for each in [each for each in node.users if not each.users]:
            node.graph.erase_node(each)
    return bool(can)


def _graph_modules(graph: GraphModule) -> list[GraphModule]:
    return [each for each in graph.modules() if isinstance(each, GraphModule)]
