"""Matrix products of the sycl form as oneDNN primitives, or products of panels: with what
follows them, and with constant weights packed.

As for convolutions, only with frozen parameters: see Note [Convolutions of compiled
graphs]. A linear layer of a batch of sequences is a product of matrices between two
views. What follows the second view is computed with the product, too.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from xpurt.compiler.frozen.epilogues import Epilogue, epilogue_of
from xpurt.compiler.frozen.weights import (
    constant_weight,
    packed_weight,
    packing_operands,
)
from xpurt.compiler.graph_nodes import call
from xpurt.functional.panels import ACTIVATIONS, pack_panels, takes_panels

_VIEWS: Final = (torch.ops.aten.reshape.default, torch.ops.aten.view.default)


def replace(graph: GraphModule) -> bool:
    """Replaces the products of a graph that have a constant weight, and returns whether
    there were any. Devices without the primitives keep them."""
    changed = False
    for node in list(graph.graph.nodes):
        found = _Product.of(graph, node)
        changed |= found is not None and _replace(graph, found)
    return changed


@dataclass(frozen=True, slots=True)
class _Product:
    node: Node
    input: Node
    weight: Node
    bias: Node | None
    constant: Tensor  # the weight

    @staticmethod
    def of(graph: GraphModule, node: Node) -> "_Product | None":
        args: Any = node.args
        bias: Node | None = None
        if node.target is torch.ops.aten.mm.default:
            input, weight = args
        elif node.target is torch.ops.aten.addmm.default and not node.kwargs:
            bias, input, weight = args
        else:
            return None
        constant = constant_weight(graph, input, weight, bias)
        if constant is None:
            return None
        if bias is not None and list(bias.meta["val"].size()) != [constant.size(1)]:
            return None
        return _Product(node, input, weight, bias, constant)


class _Panels:
    """The op `xpurt::panel_linear`."""

    activations: Final[Collection[str] | None] = ACTIVATIONS

    def __init__(self, of: _Product, after: Epilogue) -> None:
        self._of, self._after = of, after

    def weight(self, graph: GraphModule) -> Node | None:
        of = self._of
        arguments = (of.constant.t(),)
        return packed_weight(graph, pack_panels, arguments, of.weight, of.node)

    def product(self, graph: GraphModule, weight: Node, other: Node | None) -> Node:
        of, op = self._of, torch.ops.xpurt.panel_linear.default
        after = of.constant.size(1), self._after.activation.name
        return call(graph.graph, op, of.input, weight, of.bias, other, *after)


class _Primitive:
    """The op `xpurt::fused_product`."""

    activations: Final[Collection[str] | None] = None  # all of those that are known

    def __init__(self, of: _Product, after: Epilogue) -> None:
        self._of, self._after = of, after
        sizes = list(of.weight.meta["val"].size())
        self._after_other = sizes, *after.activation

    def weight(self, graph: GraphModule) -> Node | None:
        """None if there is no primitive."""
        of, pack = self._of, torch.ops.xpurt.pack_product_weight
        operands = packing_operands(
            of.node, of.input, of.constant, of.bias, self._after
        )
        arguments = *operands, *self._after_other
        return packed_weight(graph, pack, arguments, of.weight, of.node)

    def product(self, graph: GraphModule, weight: Node, other: Node | None) -> Node:
        of, op = self._of, torch.ops.xpurt.fused_product.default
        operands = of.input, weight, of.bias, other
        return call(graph.graph, op, *operands, *self._after_other)


def _replace(graph: GraphModule, of: _Product) -> bool:
    by_panels = takes_panels(of.input.meta["val"], of.constant.t())
    form = _Panels if by_panels else _Primitive
    after = _epilogue_of(of.node, form.activations)
    made, reshape = form(of, after), torch.ops.aten.reshape.default
    result = of.node.meta["val"]
    with graph.graph.inserting_before(after.last):
        weight = made.weight(graph)
        if weight is None:
            return False
        other = after.other
        if other is not None:
            other = call(graph.graph, reshape, other, list(result.size()))
        product = made.product(graph, weight, other)
        sizes = list(after.last.meta["val"].size())
        if sizes != list(result.size()):
            product = call(graph.graph, reshape, product, sizes)
        after.last.replace_all_uses_with(product)
    return True


def _epilogue_of(node: Node, activations: Collection[str] | None) -> Epilogue:
    """Of the product itself, or of the view that alone reads it. What is added is by
    rows, as the product is. activations: see epilogue_of."""
    start = node
    if len(node.users) == 1:
        (reader,) = node.users
        if reader.target in _VIEWS:
            start = reader
    found = epilogue_of(start, activations)
    by_rows = found.other is None or found.other.meta["val"].is_contiguous()
    return found if by_rows else Epilogue(start)


def fake(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    other: Tensor | None,
    weight_sizes: list[int],
    activation: str,
    alpha: float,
    beta: float,
) -> Tensor:
    """The result of `xpurt::fused_product`, without elements."""
    return input.new_empty([*input.shape[:-1], weight_sizes[-1]])


def fake_panels(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    other: Tensor | None,
    columns: int,
    activation: str,
) -> Tensor:
    """The result of `xpurt::panel_linear`, without elements."""
    return input.new_empty([*input.shape[:-1], columns])
