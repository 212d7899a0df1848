"""Convolutions of the sycl form as oneDNN primitives: with what follows them, with
constant weights packed, and images in the primitives' own format from layer to layer.

Note [Convolutions of compiled graphs]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Inductor leaves a convolution to the eager op. It reorders the images and the weight to
the primitive's layouts and back in each call, and what follows is another kernel. In a
graph the next reader is known. So with frozen parameters the pass replaces a
convolution, an addition and an activation by `xpurt::fused_convolution`. The weight is
packed here, once, and the result stays in the format that oneDNN asks for. Ops that
want other images get a permuted view, which Inductor makes part of their kernels.

Other graphs stay as they are, as on the CPU: the primitive's ReLU makes 0 of NaN, which
a program under training has to see.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from xpurt.compiler.frozen.epilogues import Epilogue, epilogue_of
from xpurt.compiler.frozen.weights import (
    constant_weight,
    packed_weight,
    packing_operands,
)
from xpurt.compiler.graph_nodes import call, call_now
from xpurt.functional.convolutions import (
    CHANNELS_LAST,
    CONTIGUOUS,
    Geometry,
    by_axis,
    channels_last,
    output_sizes,
)
from xpurt.functional.winograd import BLOCKS, pack_winograd_weight, takes_winograd


def replace(graph: GraphModule) -> bool:
    """Replaces the convolutions of a graph that have a constant weight, and returns
    whether there were any. Devices without the primitives keep them."""
    changed = False
    images = _Images(graph.graph)
    for node in list(graph.graph.nodes):
        found = _Convolution.of(graph, node)
        if found is not None:
            changed |= _replace(graph, found, images)
    return changed


@dataclass(frozen=True, slots=True)
class _Convolution:
    node: Node
    input: Node
    weight: Node
    bias: Node | None
    stride: list[int]
    padding: list[int]
    dilation: list[int]
    groups: int
    constant: Tensor  # the weight

    @staticmethod
    def of(graph: GraphModule, node: Node) -> "_Convolution | None":
        args: Any = node.args
        if node.target is torch.ops.aten.convolution.default and not args[6]:
            input, weight, bias, stride, padding, dilation, _, _, groups = args
        elif node.target is torch.ops.mkldnn._convolution_pointwise.default:
            input, weight, bias, padding, stride, dilation, groups, after, *_ = args
            if after != "none":
                return None
        else:
            return None
        constant = constant_weight(graph, input, weight, bias)
        if constant is None or not 1 <= constant.dim() - 2 <= 3:
            return None
        axes = constant.dim() - 2
        lists = by_axis(stride, axes), by_axis(padding, axes), by_axis(dilation, axes)
        return _Convolution(node, input, weight, bias, *lists, groups, constant)

    @property
    def weight_sizes(self) -> list[int]:
        return list(self.weight.meta["val"].size())

    def formats(self) -> list[int]:
        """Those of the input and the result that the device prefers; empty if it has no
        primitive."""
        bias = None if self.bias is None else self.bias.meta["val"]
        found: list[int] = call_now(
            torch.ops.xpurt.convolution_formats,
            *self.arguments(
                self.input.meta["val"],
                self.weight.meta["val"],
                bias,
                None,
                Epilogue(self.node),
                (CONTIGUOUS, CONTIGUOUS),
            ),
        )
        return found

    def arguments(
        self,
        input: Any,
        weight: Any,
        bias: Any,
        other: Any,
        after: Epilogue,
        formats: tuple[int, int],
    ) -> tuple[Any, ...]:
        """Of `xpurt::fused_convolution`."""
        return (
            input, weight, bias, other, self.weight_sizes, self.stride, self.padding,
            self.dilation, self.groups, *after.activation, *formats,
        )  # fmt: skip


def _replace(graph: GraphModule, of: _Convolution, images: "_Images") -> bool:
    after = epilogue_of(of.node)
    preferred = of.formats()
    if not preferred:
        return False
    taken, made = formats = preferred[0], preferred[1]
    with graph.graph.inserting_before(after.last):
        input = images.in_format(of.input, taken)
        other = None if after.other is None else images.in_format(after.other, made)
        if _takes_winograd(of, after, formats):
            pack, relu = pack_winograd_weight, after.activation.name == "relu"
            weight = packed_weight(graph, pack, (of.constant,), of.weight, of.node)
            op = torch.ops.xpurt.winograd_conv2d.default
            arguments = (input, weight, of.bias, other, of.padding, relu)
        else:
            weight = _packed(graph, of, after, input, formats)
            op = torch.ops.xpurt.fused_convolution.default
            arguments = of.arguments(input, weight, of.bias, other, after, formats)
        result = call(graph.graph, op, *arguments)
        images.replace(after.last, result, made)
    return True


def _takes_winograd(
    of: _Convolution, after: Epilogue, formats: tuple[int, int]
) -> bool:
    stride, padding, dilation = map(tuple, (of.stride, of.padding, of.dilation))
    return (
        formats[0] == formats[1]
        and formats[0] in (CHANNELS_LAST, *BLOCKS)
        and after.activation.name in ("none", "relu")
        and takes_winograd(
            of.constant,
            Geometry(stride, padding, dilation, of.groups),
            of.input.meta["val"],
        )
    )


class _Images:
    """The images of a graph: nodes, and the same in blocks of channels."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._blocked: dict[tuple[Node, int], Node] = {}

    def in_format(self, node: Node, format: int) -> Node:
        """The node's images for a primitive. Blocks are only made of whole ones."""
        sizes = list(node.meta["val"].size())
        if format <= CHANNELS_LAST or sizes[1] % format:
            return node
        known = self._blocked.get((node, format))
        if known is None:
            aten = torch.ops.aten
            blocks = [sizes[0], sizes[1] // format, format, *sizes[2:]]
            order = [0, 1, *range(3, len(blocks)), 2]
            known = call(self._graph, aten.reshape.default, node, blocks)
            known = call(self._graph, aten.permute.default, known, order)
            known = call(
                self._graph,
                aten.clone.default,
                known,
                memory_format=torch.contiguous_format,
            )
            self._blocked[node, format] = known
        return known

    def replace(self, before: Node, result: Node, format: int) -> None:
        """Replaces a node by the result of a primitive."""
        plain = result
        if format > CHANNELS_LAST:
            aten = torch.ops.aten
            sizes = list(before.meta["val"].size())
            order = [0, 1, len(sizes), *range(2, len(sizes))]
            plain = call(self._graph, aten.permute.default, result, order)
            plain = call(self._graph, aten.reshape.default, plain, sizes)
            self._blocked[plain, format] = result
        before.replace_all_uses_with(plain)


def _packed(
    graph: GraphModule,
    of: _Convolution,
    after: Epilogue,
    input: Node,
    formats: tuple[int, int],
) -> Node:
    """The packed weight as a constant of the graph."""
    operands = packing_operands(of.node, input, of.constant, of.bias, after)
    arguments = of.arguments(*operands, after, formats)
    pack = torch.ops.xpurt.pack_convolution_weight
    return packed_weight(graph, pack, arguments, of.weight, of.node) or of.weight


def fake(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    other: Tensor | None,
    weight_sizes: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    activation: str,
    alpha: float,
    beta: float,
    input_format: int,
    format: int,
) -> Tensor:
    """The result of `xpurt::fused_convolution`, without elements."""
    images = input.shape[: len(weight_sizes)]
    sizes = output_sizes(images, weight_sizes, stride, padding, dilation)
    if format > CHANNELS_LAST:
        return input.new_empty([sizes[0], sizes[1] // format, *sizes[2:], format])
    made = input.new_empty(sizes)
    order = channels_last(len(sizes))
    if format == CHANNELS_LAST and order is not None:
        made = made.to(memory_format=order)
    return made


def fake_winograd(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    other: Tensor | None,
    padding: list[int],
    relu: bool,
) -> Tensor:
    """The result of `xpurt::winograd_conv2d`, without elements."""
    _, panels, _, panel = weight.shape
    images = (input.shape[0], 0, *input.shape[2:4])
    channels, ones = panels * panel, [1, 1]
    sizes = output_sizes(images, [channels, 0, 3, 3], ones, padding, ones)
    if input.dim() == 5:
        block = input.shape[4]
        return input.new_empty([sizes[0], channels // block, *sizes[2:], block])
    return input.new_empty(sizes).to(memory_format=torch.channels_last)
