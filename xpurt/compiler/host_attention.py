"""Attention of compiled host code by the op of xpu, which chooses from more kernels. See
Note [Attention of compiled host code] in csrc/dispatch/composite/host_attention.cpp."""

from typing import Final

import torch
from torch._inductor import config
from torch._inductor.virtualized import V
from torch.fx import GraphModule

from xpurt.kernels import get_kernel_policy

_ATEN: Final = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu

_defined = False


def define() -> None:
    """Describes the op to the compiler. A second call does nothing."""
    global _defined
    if not _defined:
        torch.library.register_fake("xpurt::host_attention", _ATEN.default)
        _defined = True


def replace(graph: GraphModule) -> None:
    """Replaces attention in a graph for the host, unless a program without Python will
    call the code, or the kernel policy leaves no choice."""
    if V.aot_compilation or config.cpp_wrapper or get_kernel_policy() != "auto":
        return
    from torch._inductor.lowering import lowerings, make_fallback, sdpa_constraint

    ours = torch.ops.xpurt.host_attention.default
    for node in graph.graph.find_nodes(op="call_function", target=_ATEN.default):
        node.target = ours
        if ours not in lowerings:
            make_fallback(ours, sdpa_constraint, warn=False)  # type: ignore[no-untyped-call]
    graph.recompile()
