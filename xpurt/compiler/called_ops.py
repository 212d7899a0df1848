"""Ops that Inductor calls as in eager mode."""

import functools
from collections.abc import Callable
from typing import Any

import torch

from xpurt.compiler import host_graph, opencl_types


def define() -> None:
    _call_what_kernels_lack()
    _call_gradients_of_embeddings()
    _call_gradients_of_pooling()
    _call_pooling_with_indices()


def _call_what_kernels_lack() -> None:
    """Those that have a tensor which the device's code can't have."""
    from torch._inductor import lowering

    before = lowering.unsupported_input_tensor

    @functools.wraps(before)
    def unsupported(t: torch.Tensor, node: Any = None) -> Any:
        lacks = t.device.type == "xpu" and not opencl_types.computes(t)
        return lacks or before(t, node)

    lowering.unsupported_input_tensor = unsupported


def _call_gradients_of_embeddings() -> None:
    """PyTorch decomposes this op for no xpu tensor. It is called where XPU is compiled
    in when Inductor is imported: not on a CUDA build, and not if xpurt comes later."""
    from torch._inductor.lowering import lowerings, make_fallback

    op = torch.ops.aten.embedding_dense_backward
    if op.default not in lowerings:
        make_fallback(op, warn=False)  # type: ignore[no-untyped-call]


def _call_gradients_of_pooling() -> None:
    """Inductor's code for the host looks at each window of each element; PyTorch's kernel
    adds each gradient once."""
    from torch._inductor import lowering

    op = torch.ops.aten.max_pool2d_with_indices_backward
    called = lowering.fallback_max_pool2d_with_indices_backward
    _call_for_host(op, called, lambda node: True)


def _call_pooling_with_indices() -> None:
    """Inductor's code for the host looks at each window twice. torch.compile decomposes the
    op before, so this is for lazy graphs: see Note [Code of lazy graphs]."""
    from torch._inductor import lowering

    op = torch.ops.aten.max_pool2d_with_indices
    called = lowering.fallback_handler(  # type: ignore[no-untyped-call]
        op.default, add_to_fallback_set=False
    )
    _call_for_host(
        op, called, lambda node: any(each.args[1] == 1 for each in node.users)
    )


def _call_for_host(
    op: Any,
    called: Callable[..., Any],
    is_wanted: Callable[[torch.fx.Node], bool],
) -> None:
    """Nodes of the op that are wanted are lowered by `called` in graphs for the host."""
    from torch._inductor import lowering
    from torch._inductor.virtualized import V

    before = lowering.lowerings[op.default]

    @functools.wraps(before)
    def lowered(*arguments: Any, **named: Any) -> Any:
        graph: Any = V.graph
        is_called = host_graph.is_for_host(graph.module) and is_wanted(
            graph.current_node
        )
        return (called if is_called else before)(*arguments, **named)

    for each in (op, op.default):
        lowering.lowerings[each] = lowered
