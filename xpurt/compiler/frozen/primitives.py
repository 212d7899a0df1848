"""Convolutions and products of graphs with frozen parameters, in the sycl form: each
becomes one primitive of oneDNN with what follows it, and with a packed weight."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from xpurt.compiler.frozen import convolutions, products
from xpurt.compiler.graph_nodes import complete
from xpurt.mapping import current_placement

_defined = False


def define() -> None:
    """Describes the ops to the compiler. A second call does nothing."""
    global _defined
    if _defined:
        return
    _defined = True
    fakes: dict[str, Callable[..., torch.Tensor]] = {
        "fused_convolution": convolutions.fake,
        "fused_product": products.fake,
        "winograd_conv2d": convolutions.fake_winograd,
        "panel_linear": products.fake_panels,
    }
    for name, fake in fakes.items():
        torch.library.register_fake(f"xpurt::{name}", fake)


def fuse(graph: GraphModule, inputs: Sequence[Any], index: int) -> None:
    """Replaces the convolutions and products that have a constant weight in a graph for
    xpu:index, if that is one device. Devices without the primitives keep the graph as
    it is."""
    if len(current_placement().ordinals[index]) > 1:
        return  # each op chooses its device
    changed = convolutions.replace(graph)
    changed |= products.replace(graph)
    if changed:
        complete(graph, inputs)
