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

    def arguments(
        self, input: Any, weight: Any, bias: Any, other: Any, after: Epilogue
    ) -> tuple[Any, ...]:
        """Of `xpurt::fused_product`."""
        sizes = list(self.weight.meta["val"].size())
        return (input, weight, bias, other, sizes, *after.activation)


def _replace(graph: GraphModule, of: _Product) -> bool:
    by_panels = takes_panels(of.input.meta["val"], of.constant.t())
    after = _epilogue_of(of.node, ACTIVATIONS if by_panels else None)
    result = of.node.meta["val"]
    made, aten = graph.graph, torch.ops.aten
    with made.inserting_before(after.last):
        if by_panels:
            arguments: Any = (of.constant.t(),)
            weight = packed_weight(graph, pack_panels, arguments, of.weight, of.node)
        else:
            operands = packing_operands(of.node, of.input, of.constant, of.bias, after)
            arguments = of.arguments(*operands, after)
            pack = torch.ops.xpurt.pack_product_weight
            weight = packed_weight(graph, pack, arguments, of.weight, of.node)
        if weight is None:
            return False
        other = after.other
        if other is not None:
            other = call(made, aten.reshape.default, other, list(result.size()))
        if by_panels:
            op = torch.ops.xpurt.panel_linear.default
            columns, name = of.constant.size(1), after.activation.name
            arguments = (of.input, weight, of.bias, other, columns, name)
        else:
            op = torch.ops.xpurt.fused_product.default
            arguments = of.arguments(of.input, weight, of.bias, other, after)
        product = call(made, op, *arguments)
        sizes = list(after.last.meta["val"].size())
        if sizes != list(result.size()):
            product = call(made, aten.reshape.default, product, sizes)
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
