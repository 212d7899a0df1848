"""Constant weights of the primitives in a graph."""

from typing import Any, Final

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from xpurt.compiler.frozen.epilogues import Epilogue
from xpurt.compiler.graph_nodes import call_now, constant

_TYPES: Final = (torch.float32, torch.bfloat16, torch.float16)


def constant_weight(
    graph: GraphModule, input: Node, weight: Node, bias: Node | None
) -> Tensor | None:
    """The weight, if it is a constant and a primitive can have the operands: of a dtype
    that oneDNN computes, and of known sizes, none of which is 0."""
    if weight.op != "get_attr":
        return None
    nodes = [input, weight] if bias is None else [input, weight, bias]
    values = [each.meta["val"] for each in nodes]
    fits = values[0].dtype in _TYPES and all(
        isinstance(n, int) and n for each in values for n in each.size()
    )
    found: Tensor | None = getattr(graph, str(weight.target)) if fits else None
    return found


def packing_operands(
    node: Node, input: Node, weight: Tensor, bias: Node | None, after: Epilogue
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Operands by which a primitive packs the weight of `node`: the input, the weight,
    the bias and what is added. All but the weight stand for their sizes."""
    return (
        input.meta["val"],
        weight,
        None if bias is None else bias.meta["val"],
        None if after.other is None else node.meta["val"],
    )


def packed_weight(
    graph: GraphModule, pack: Any, arguments: tuple[Any, ...], weight: Node, node: Node
) -> Node | None:
    """The packed weight of a primitive as a constant of the graph; None if `pack` makes
    none. arguments: of the op `pack`. node: the op that the primitive replaces."""
    packed: Tensor = call_now(pack, *arguments)
    if packed.numel() == 0:
        return None
    return constant(graph, f"_packed_{weight.target}_{node.name}", packed, node)
