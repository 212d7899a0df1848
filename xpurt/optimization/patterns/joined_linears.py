"""Linear layers of one input as one product: queries, keys and values of a token.

It is for a few tokens at a time in bfloat16 and float16. There three layers of 768 take
0.6 of the time as one, and with 16 tokens 0.8 to 1.3, since the results have to be made
contiguous (processor time of one thread, AMD EPYC, 2026-11-26). In float32 the time is
that of reading the weights.
"""

import operator
from typing import Final

import torch
from torch import Tensor
from torch.fx import Graph, Node

from xpurt.optimization.fused_linear import Layer, joined_linear, linear
from xpurt.optimization.patterns.graph_calls import value_of
from xpurt.optimization.patterns.layers import LinearNode, linear_of
from xpurt.optimization.patterns.pattern import Parameters, is_written_within

_MOST_ROWS: Final = 4


def linears(x: Tensor, layers: tuple[Layer, ...]) -> list[Tensor]:
    """The results of linear layers of one input, each contiguous. x: (..., in)."""
    joined = joined_linear(x, layers) if _is_few_rows(x) else None
    if joined is None:
        return [linear(x, *layer) for layer in layers]
    parts = torch.split(joined, [len(weight) for weight, _ in layers], -1)
    return [each.contiguous() for each in parts]


def _is_few_rows(x: Tensor) -> bool:
    return x.dim() > 0 and 0 < x.numel() <= _MOST_ROWS * x.shape[-1]


def join_linears(graph: Graph, parameters: Parameters) -> list[tuple[str, str]]:
    """The name of the first weight of each product, and what was joined to it."""
    by_input: dict[Node, list[LinearNode]] = {}
    for node in graph.nodes:
        layer = linear_of(node, parameters)
        if layer is not None and _gains(layer):
            by_input.setdefault(layer.x, []).append(layer)
    rows = []
    for layers in by_input.values():
        nodes = tuple(layer.node for layer in layers)
        if len(layers) > 1 and not is_written_within(nodes):
            _join(graph, layers)
            first, *others = (parameters[layer.weight] for layer in layers)
            names = " and ".join(each.rpartition(".")[0] for each in others)
            rows.append((first, f"one product with {names}"))
    return rows


def _gains(layer: LinearNode) -> bool:
    x, y = value_of(layer.x), value_of(layer.node)
    if x is None or y is None or y.dtype.itemsize != 2:
        return False
    # A size that is no number may be small in another call.
    rows = [size for size in x.shape[:-1] if type(size) is int]
    return all(size <= _MOST_ROWS for size in rows)


def _join(graph: Graph, layers: list[LinearNode]) -> None:
    first = layers[0].node
    with graph.inserting_before(first):
        operands = tuple((layer.weight, layer.bias) for layer in layers)
        made = graph.call_function(linears, (layers[0].x, operands))
        for index, layer in enumerate(layers):
            part = graph.call_function(operator.getitem, (made, index))
            part.meta = layer.node.meta
            layer.node.replace_all_uses_with(part)
    for layer in reversed(layers):
        graph.erase_node(layer.node)
