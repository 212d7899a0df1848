"""Attention in graphs of kernels: a result in the layout that the graph was traced with.

PyTorch's kernel for the CPU returns a result in the layout of the query, and so does the
tensor that stands for it while a graph is traced. xpurt's kernels return one in which the
heads of a token are adjacent. A compiled graph takes the addresses of elements from the
traced layout. So it calls an op of this module, which copies a result with another one.
"""

from typing import Any

import torch

_library: Any = torch.library.Library("xpurt_attention", "DEF")  # type: ignore[no-untyped-call]
_OVERLOADS = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_ATTENTION = _OVERLOADS.default


def define() -> None:
    """Defines the op. A second call does nothing."""
    if hasattr(torch.ops.xpurt_attention, "forward"):
        return
    _library.define("forward" + str(_ATTENTION._schema).partition("cpu")[2])
    _library.impl("forward", _attend, "CompositeExplicitAutograd")
    torch.library.register_fake("xpurt_attention::forward", _ATTENTION, lib=_library)


def replace(graph: torch.fx.GraphModule) -> None:
    """Replaces the attention of a graph that is compiled to kernels."""
    define()
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target is _ATTENTION:
            node.target = torch.ops.xpurt_attention.forward.default
    graph.recompile()


def _attend(query: torch.Tensor, *others: Any, **more: Any) -> tuple[Any, Any]:
    found, sums = _ATTENTION(query, *others, **more)
    wanted = torch.empty_like(query)
    if wanted.stride() != found.stride():
        found = wanted.copy_(found)
    return found, sums
