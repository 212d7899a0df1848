"""SwiGLU: silu(gate(x)) * up(x) (Shazeer, GLU variants improve transformer, 2020)."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Node

from xpurt.optimization import activations
from xpurt.optimization.activations import Activation
from xpurt.optimization.fused_layers import joined_linear, linear
from xpurt.optimization.patterns.activation_modules import activation_of
from xpurt.optimization.patterns.graph_calls import child_of, operands
from xpurt.optimization.patterns.pattern import KindOf, Match, Pattern, linear_child

_SILU = Activation("silu")


def swiglu(gate: nn.Linear, up: nn.Linear, x: Tensor) -> Tensor:
    """silu(gate(x)) * up(x). On xpu the layers are one product.

    On the CPU this would take 1.03 to 1.17 of the time of two (processor time of one
    thread, AMD EPYC, 2026-11-26); on xpu it takes 0.5 to 0.9.
    """
    joined = joined_linear((gate, up), x) if x.device.type == "xpu" else None
    if joined is None:
        return linear(gate, x, None, _SILU) * linear(up, x)
    made: Tensor = torch.ops.xpurt.swiglu(*joined.chunk(2, -1))
    return made


def _find(module: nn.Module, node: Node, kind_of: KindOf) -> Match | None:
    for one, other in operands(node, "mul"):
        gated = _silu_of(module, one)
        gate, up = (linear_child(module, each, kind_of) for each in (gated, other))
        if gate is None or up is None or gate is up or gated.args != other.args:
            continue
        if gate.out_features != up.out_features:
            continue
        nodes = tuple(sorted((gated, one, other, node)))
        args = (gate, up, gated.args[0])
        return Match(nodes, swiglu, args, str(gated.target))
    return None


def _silu_of(module: nn.Module, node: Any) -> Any:
    """What a node applies silu to."""
    child = child_of(module, node)
    if child is not None:
        known = activation_of(child) if len(node.args) == 1 else None
    elif isinstance(node, Node):
        known = activations.of_call(node.target, node.args, node.kwargs)
    else:
        known = None
    return node.args[0] if known == _SILU else None


SWIGLU = Pattern(
    "SwiGLU",
    "silu(gate(x)) * up(x)",
    "torch.ops.xpurt.swiglu of one product on xpu",
    _find,
)
