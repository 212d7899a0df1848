"""What is fused in a graph of Dynamo's: the table of patterns, then each convolution or
linear layer with the batch norm, the addition and the activation that follow it, linear
layers of one input, and other linear layers. Dropout that is not active goes.

The longest chain is taken. A value that anything else reads ends it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard

from torch import Tensor, nn
from torch.fx import Graph, GraphModule, Node
from torch.nn import functional as F

from xpurt.functional.activations import NONE, Activation
from xpurt.functional.attention import attention, takes_attention
from xpurt.functional.convolutions import BatchNorm
from xpurt.functional.panels import takes_packed_weight
from xpurt.optimization.activation_calls import of_call
from xpurt.optimization.fused_convolution import convolution
from xpurt.optimization.fused_linear import linear, packed_linear
from xpurt.optimization.patterns.additions import added_to, reader_of
from xpurt.optimization.patterns.graph_calls import value_of
from xpurt.optimization.patterns.joined_linears import join_linears
from xpurt.optimization.patterns.layers import (
    ConvolutionNode,
    LinearNode,
    convolution_of,
    is_no_dropout,
    linear_of,
    norm_of,
)
from xpurt.optimization.patterns.pattern import Match, Parameters, replace
from xpurt.optimization.patterns.table import fuse_patterns
from xpurt.quantization.in_plain_ops import QuantizedLayer


def fuse(
    graph: GraphModule, inputs: list[Any], module: nn.Module
) -> list[tuple[str, str]]:
    """Changes the graph. inputs: what it is called with first. module: whose forward it
    is part of. Returns the qualified name of each layer, and what it was fused to."""
    nodes = graph.graph
    parameters = _parameters_of(nodes, inputs, module)
    for node in list(nodes.nodes):
        if is_no_dropout(node):
            node.replace_all_uses_with(node.args[0])
            nodes.erase_node(node)
    rows = fuse_patterns(nodes, parameters)
    rows += _take_attention(nodes)
    for node in list(nodes.nodes):
        layer = linear_of(node, parameters) or convolution_of(node, parameters)
        if layer is not None and (what := _fuse_chain(nodes, layer, parameters)):
            rows.append((parameters[layer.weight], what))
    rows += join_linears(nodes, parameters)
    for node in list(nodes.nodes):
        layer = linear_of(node, parameters)
        if layer is not None and _gains_by_packing(layer):
            replace(nodes, Match((node,), packed_linear, layer.operands))
            rows.append((parameters[layer.weight], "linear layer + packed weight"))
    nodes.lint()
    return [(_layer(name), what) for name, what in rows]


def _take_attention(graph: Graph) -> list[tuple[str, str]]:
    """Where it gains, for sizes that are numbers."""
    rows = []
    for node in graph.find_nodes(
        op="call_function", target=F.scaled_dot_product_attention
    ):
        if len(node.args) < 3:
            continue
        query, key, value = map(value_of, node.args[:3])
        if (
            _has_sizes(query)
            and _has_sizes(key)
            and _has_sizes(value)
            and takes_attention(query, key, value)
        ):
            node.target = attention  # of the same arguments
            rows.append(("", "attention by panels"))
    return rows


def _has_sizes(value: Tensor | None) -> TypeGuard[Tensor]:
    return value is not None and all(type(size) is int for size in value.shape)


def _layer(parameter: str) -> str:
    return parameter.rpartition(".")[0]


def _gains_by_packing(layer: LinearNode) -> bool:
    """For sizes that are numbers."""
    x, weight = value_of(layer.x), value_of(layer.weight)
    return _has_sizes(x) and _has_sizes(weight) and takes_packed_weight(x, weight)


def _parameters_of(graph: Graph, inputs: list[Any], module: nn.Module) -> Parameters:
    tensors = [*module.named_parameters(), *_of_quantized_layers(module)]
    names = {id(each): name for name, each in tensors}
    found = [node for node in graph.nodes if node.op == "placeholder"]
    return {
        node: names[id(value)]
        for node, value in zip(found, inputs, strict=True)
        if id(value) in names and type(value) in (nn.Parameter, Tensor)
    }


def _of_quantized_layers(module: nn.Module) -> list[tuple[str, Tensor]]:
    return [
        (f"{name}.{own}", buffer)
        for name, layer in module.named_modules()
        if isinstance(layer, QuantizedLayer)
        for own, buffer in layer.named_buffers()
    ]


@dataclass(slots=True)
class _Chain:
    """The layer, and what follows it in this order."""

    nodes: list[Node]
    norm: BatchNorm | None = None
    other: Node | None = None
    activation: Activation = NONE

    def __str__(self) -> str:
        names = ["batch norm"] if self.norm else []
        names += ["addition"] if self.other else []
        names += [self.activation.name] if self.activation is not NONE else []
        return " + ".join(names)


def _fuse_chain(
    graph: Graph, layer: LinearNode | ConvolutionNode, parameters: Parameters
) -> str:
    """What was fused; "" if nothing was."""
    chain = _chain_of(layer, parameters)
    if len(chain.nodes) == 1:
        return ""
    function: Callable[..., Tensor] = linear
    operands: tuple[Any, ...] = layer.operands
    if isinstance(layer, ConvolutionNode):
        function, operands = convolution, (*operands, layer.geometry, chain.norm)
    args = (*operands, chain.other, chain.activation)
    if not replace(graph, Match(tuple(chain.nodes), function, args)):
        return ""
    kind = "convolution" if isinstance(layer, ConvolutionNode) else "linear layer"
    return f"{kind} + {chain}"


def _chain_of(layer: LinearNode | ConvolutionNode, parameters: Parameters) -> _Chain:
    chain = _Chain([layer.node])
    after = reader_of(chain.nodes[-1])
    if after is not None and isinstance(layer, ConvolutionNode):
        chain.norm = norm_of(after, parameters)
        if chain.norm is not None:
            chain.nodes.append(after)
            after = reader_of(chain.nodes[-1])
    if after is not None:
        chain.other = added_to(after, chain.nodes[-1])
        if chain.other is not None:
            chain.nodes.append(after)
            after = reader_of(chain.nodes[-1])
    known = None if after is None else of_call(after)
    if after is not None and known is not None:
        chain.activation = known
        chain.nodes.append(after)
    return chain
