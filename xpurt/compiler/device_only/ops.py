"""Ops that xpu has kernels for, and the CPU has none: PyTorch chooses them by the device,
as the fused cells of `nn.LSTMCell` and `nn.GRUCell`, before a graph is one for the host.
"""

import functools
from typing import Any, Final

import torch
from torch._ops import OpOverload

from xpurt.compiler import device_ops

# Those whose kernel for the CPU only raises an error.
_REFUSED: Final = (
    "aten::convolution_overrideable",
    "aten::convolution_backward_overrideable",
)


def define() -> None:
    """Makes Inductor call them, in code for the host as ops of xpu. A second call does
    nothing."""
    for op in found():
        device_ops.call(op)
        device_ops.call(device_ops.define_for(op))


def without_functional_form(graph: torch.fx.GraphModule) -> str:
    """Why AOTAutograd refuses a graph of Dynamo: it has one of these ops that writes to
    an operand. "" if it does not."""
    names = {op._opname for op in found() if op._schema.is_mutable}
    for module in graph.modules():
        nodes = module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ()
        for node in nodes:
            name = node.target if node.op == "call_method" else _name(node.target)
            if name in names:
                return f"aten::{name} has no form that writes to no operand"
    return ""


def _name(target: Any) -> str:
    packet = getattr(target, "overloadpacket", target)
    qualified = getattr(packet, "_qualified_op_name", "")
    namespace, _, name = str(qualified).partition("::")
    return name if namespace == "aten" else ""


@functools.cache
def found() -> frozenset[OpOverload]:
    """The ops of aten, as the dispatcher has them."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    computes = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    return frozenset(
        _op(name)
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::")
        and has(name, "XPU")
        and (name in _REFUSED or not computes(name, "CPU"))
    )


def _op(name: str) -> OpOverload:
    packet, _, overload = name.partition("::")[2].partition(".")
    found: OpOverload = getattr(getattr(torch.ops.aten, packet), overload or "default")
    return found
