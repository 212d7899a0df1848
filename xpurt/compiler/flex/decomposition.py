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
from torch._inductor.utils import parallel_num_threads
from torch.fx import GraphModule, Node

from xpurt.compiler.flex import blocks, calls
from xpurt.compiler.flex.inlining import inline

_FORWARD: Final = torch.ops.higher_order.flex_attention
_BACKWARD: Final = torch.ops.higher_order.flex_attention_backward
_LOGARITHMS: Final = 4  # the position among the backward call's arguments
_SCORE: Final = 3  # that of the function of scores among the forward call's
_MASK: Final = 4
_OPTIONS: Final = 6  # of the kernel


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
        and _has_small_blocks(node)
        and not _indexes_in_steps(node)
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


def _has_small_blocks(node: Node) -> bool:
    """Whether the C++ kernel, which has a block of the mask's size in memory per thread,
    takes little memory. Without a mask the block has all scores of a head."""
    query, key = (each.meta["val"] for each in node.args[:2])  # type: ignore[union-attr]
    mask: Any = node.args[_MASK]
    *_, rows_of_block, columns_of_block, _ = mask
    rows_of_block, columns_of_block = (
        calls.hint(each.meta["val"] if isinstance(each, Node) else each)
        for each in (rows_of_block, columns_of_block)
    )
    rows = min(calls.hint(query.shape[2]), rows_of_block)
    columns = min(calls.hint(key.shape[2]), columns_of_block)
    return blocks.rows_at_a_time(parallel_num_threads() * columns, rows) is None


def _indexes_in_steps(node: Node) -> bool:
    """Whether a function of the call has `bias[head][query]`: the C++ kernel takes sizes
    of its blocks for those of `bias[head]`, and raises."""
    owner: Any = node.graph.owning_module
    score: Any = node.args[_SCORE]
    mask: Any = node.args[_MASK]
    return any(
        isinstance(found := each.args[0], Node) and found.op == "call_function"
        for function in (score, mask[-1])
        for each in getattr(owner, str(function.target)).graph.find_nodes(
            op="call_function", target=torch.ops.aten.index.Tensor
        )
    )


def _graph_modules(graph: GraphModule) -> list[GraphModule]:
    return [each for each in graph.modules() if isinstance(each, GraphModule)]
