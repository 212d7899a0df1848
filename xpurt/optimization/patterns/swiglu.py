"""SwiGLU: silu(gate(x)) * up(x) (Shazeer, GLU variants improve transformer, 2020)."""

import torch
from torch import Tensor
from torch.fx import Node

from xpurt.functional.activations import Activation
from xpurt.optimization.activation_calls import of_call
from xpurt.optimization.fused_linear import Layer, joined_linear, linear
from xpurt.optimization.patterns.graph_calls import operands
from xpurt.optimization.patterns.layers import linear_of
from xpurt.optimization.patterns.pattern import Match, Parameters, Pattern

_SILU = Activation("silu")


def swiglu(x: Tensor, gate: Layer, up: Layer) -> Tensor:
    """silu(gate(x)) * up(x). On xpu the layers are one product.

    On the CPU this would take 1.03 to 1.17 of the time of two (processor time of one
    thread, AMD EPYC, 2026-11-26); on xpu it takes 0.5 to 0.9.
    """
    joined = joined_linear(x, (gate, up)) if x.device.type == "xpu" else None
    if joined is None:
        return linear(x, *gate, None, _SILU) * linear(x, *up)
    made: Tensor = torch.ops.xpurt.swiglu(*joined.chunk(2, -1))
    return made


def _find(node: Node, parameters: Parameters) -> Match | None:
    for one, other in operands(node, "mul"):
        if not isinstance(one, Node) or of_call(one) != _SILU:
            continue
        gate, up = (linear_of(each, parameters) for each in (one.args[0], other))
        if gate is None or up is None or gate.weight is up.weight:
            continue
        if gate.x is not up.x or gate.outputs != up.outputs:
            continue
        nodes = (*sorted((gate.node, one, up.node)), node)
        args = gate.x, (gate.weight, gate.bias), (up.weight, up.bias)
        return Match(nodes, swiglu, args, gate.weight)
    return None


SWIGLU = Pattern(
    "SwiGLU",
    "silu(gate(x)) * up(x)",
    "torch.ops.xpurt.swiglu of one product on xpu",
    _find,
)
