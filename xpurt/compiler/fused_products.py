"""Matrix products of the sycl form as oneDNN primitives: with what follows them, and
with constant weights packed.

As for convolutions, only with frozen parameters: see Note [Convolutions of compiled
graphs]. A linear layer of a batch of sequences is a product of matrices between two
views. What follows the second view is computed with the product, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from xpurt.compiler.epilogues import Epilogue, epilogue_of
from xpurt.compiler.graph_nodes import call, call_now, complete, constant
from xpurt.mapping import current_placement

_TYPES: Final = (torch.float32, torch.bfloat16, torch.float16)
_VIEWS: Final = (torch.ops.aten.reshape.default, torch.ops.aten.view.default)

_defined = False


def define() -> None:
    """Describes the op to the compiler. A second call does nothing."""
    global _defined
    if not _defined:
        torch.library.register_fake("xpurt::fused_product", _fake)
        _defined = True


def fuse(graph: GraphModule, inputs: Sequence[Any], index: int) -> None:
    """Replaces the products of a graph for xpu:index that have a constant weight, if
    that is one device. Devices without the primitives keep the graph as it is."""
    if len(current_placement().ordinals[index]) > 1:
        return  # each op chooses its device
    changed = False
    for node in list(graph.graph.nodes):
        found = _Product.of(graph, node)
        changed |= found is not None and _replace(graph, found)
    if changed:
        complete(graph, inputs)


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
        if weight.op != "get_attr":
            return None
        values = [
            each.meta["val"] for each in (input, weight, bias) if each is not None
        ]
        dtype, columns = values[0].dtype, values[1].size(1)
        fits = (
            dtype in _TYPES
            and all(each.dtype == dtype for each in values)
            and all(isinstance(n, int) and n for each in values for n in each.size())
            and (bias is None or list(values[2].size()) == [columns])
        )
        if not fits:
            return None
        return _Product(node, input, weight, bias, getattr(graph, weight.target))

    def arguments(
        self, input: Any, weight: Any, bias: Any, other: Any, after: Epilogue
    ) -> tuple[Any, ...]:
        """Of `xpurt::fused_product`."""
        sizes = list(self.weight.meta["val"].size())
        return (
            input, weight, bias, other, sizes,
            after.activation, after.alpha, after.beta,
        )  # fmt: skip


def _replace(graph: GraphModule, of: _Product) -> bool:
    after = _epilogue_of(of.node)
    result = of.node.meta["val"]
    packed: Tensor = call_now(
        torch.ops.xpurt.pack_product_weight,
        *of.arguments(
            of.input.meta["val"],
            of.constant,
            None if of.bias is None else of.bias.meta["val"],
            None if after.other is None else result,
            after,
        ),
    )
    if packed.numel() == 0:
        return False
    made, aten = graph.graph, torch.ops.aten
    with made.inserting_before(after.last):
        weight = constant(
            graph, f"_packed_{of.weight.target}_{of.node.name}", packed, of.node
        )
        other = after.other
        if other is not None:
            other = call(made, aten.reshape.default, other, list(result.size()))
        product = call(
            made,
            torch.ops.xpurt.fused_product.default,
            *of.arguments(of.input, weight, of.bias, other, after),
        )
        sizes = list(after.last.meta["val"].size())
        if sizes != list(result.size()):
            product = call(made, aten.reshape.default, product, sizes)
        after.last.replace_all_uses_with(product)
    return True


def _epilogue_of(node: Node) -> Epilogue:
    """Of the product itself, or of the view that alone reads it. What is added is by
    rows, as the product is."""
    start = node
    if len(node.users) == 1:
        (reader,) = node.users
        if reader.target in _VIEWS:
            start = reader
    found = epilogue_of(start)
    by_rows = found.other is None or found.other.meta["val"].is_contiguous()
    return found if by_rows else Epilogue(start)


def _fake(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    other: Tensor | None,
    weight_sizes: list[int],
    activation: str,
    alpha: float,
    beta: float,
) -> Tensor:
    return input.new_empty([input.size(0), weight_sizes[1]])
