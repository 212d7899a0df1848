"""Convolutions of 3x3 of compiled training steps by Winograd's algorithm.

Note [Trained convolutions]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
A training step computes three convolutions of each layer: the result, the gradient of the
input, and that of the weight. The first two are of 3x3 with a stride of 1, the second one
with the taps in reverse order. By Winograd's algorithm they take 0.3 to 0.7 of the time
of oneDNN's, with the weight transformed in each call (layers of a ResNet-18, AVX2, one
thread of an AMD EPYC, 2026-11-30). The gradient of the weight stays oneDNN's.

Rounding differs: see Note [Winograd's numbers] in functional/winograd.py. Largest errors
were 1.5 to 2.2 times those of oneDNN's for standard deviations of 1 and 16 to 512
channels. `torch.backends.mkldnn.conv.fp32_precision = "ieee"` keeps direct convolutions.

The rule is that of constant weights, with eight times the tiles: a transformed weight is
four times the weight, and is used once. With 32 tiles a layer of 256 and 512 channels took
1.03, and a step of one of 512 and 512 took 1.14.
"""

import operator
from typing import Any, Final

import torch
from torch import Tensor
from torch._inductor import config
from torch._inductor.ir import ExternKernel
from torch._inductor.virtualized import V
from torch.fx import GraphModule, Node

from xpurt.compiler.graph_nodes import call
from xpurt.functional.convolutions import Geometry, output_sizes
from xpurt.functional.winograd import takes_winograd
from xpurt.kernels import get_kernel_policy

_LEAST_TILES: Final = 64  # per thread

_aten = torch.ops.aten
_defined = False


def define() -> None:
    """Describes the op to the compiler. A second call does nothing."""
    global _defined
    if not _defined:
        torch.library.register_fake("xpurt::winograd_trained", fake)
        _defined = True


def replace(graph: GraphModule) -> None:
    """Replaces convolutions in a graph for the host that is trained, unless a program
    without Python will call the code, or the kernel policy leaves no choice."""
    if V.aot_compilation or config.cpp_wrapper or get_kernel_policy() != "auto":
        return
    changed = False
    find = graph.graph.find_nodes
    for node in find(op="call_function", target=_aten.convolution.default):
        changed |= _replace_result(graph, node)
    for node in find(op="call_function", target=_aten.convolution_backward.default):
        changed |= _replace_gradient(graph, node)
    if changed:
        _call_by_channels_last()
        graph.graph.eliminate_dead_code()
        graph.recompile()


def _replace_result(graph: GraphModule, node: Node) -> bool:
    args: Any = node.args
    input, weight, bias, stride, padding, dilation, transposed, _, groups = args
    geometry = _geometry(stride, padding, dilation, groups)
    if bias is not None or transposed or not _pays(input, weight, geometry):
        return False
    with graph.graph.inserting_before(node):
        made = _call(graph, input, weight, geometry.padding, of_gradient=False)
    node.replace_all_uses_with(made)
    return True


def _replace_gradient(graph: GraphModule, node: Node) -> bool:
    """Replaces the input's gradient among the results of a derivative."""
    args: Any = node.args
    of_result, _, weight, _, stride, padding, dilation, transposed, _, groups, mask = (
        args
    )
    geometry = _geometry(stride, [2 - each for each in padding], dilation, groups)
    if not mask[0] or transposed or min(geometry.padding) < 0:
        return False
    if not _pays(of_result, weight, geometry, of_gradient=True):
        return False
    with graph.graph.inserting_before(node):
        made = _call(graph, of_result, weight, geometry.padding, of_gradient=True)
    for user in list(node.users):
        if user.target is operator.getitem and user.args[1] == 0:
            user.replace_all_uses_with(made)
            graph.graph.erase_node(user)
    node.args = (*args[:10], [False, *mask[1:]])
    node.meta["val"] = (None, *node.meta["val"][1:])
    return True


def _geometry(stride: Any, padding: Any, dilation: Any, groups: int) -> Geometry:
    return Geometry(tuple(stride), tuple(padding), tuple(dilation), groups)


def _pays(
    input: Node, weight: Node, geometry: Geometry, *, of_gradient: bool = False
) -> bool:
    x: Tensor = input.meta["val"]
    taps: Tensor = weight.meta["val"]
    sizes = (*x.size(), *taps.size())
    if x.dim() != 4 or not all(isinstance(each, int) for each in sizes):
        return False
    if of_gradient:
        taps = taps.transpose(0, 1)
    return taps.dtype == torch.float32 and takes_winograd(
        taps, geometry, x, least_tiles=_LEAST_TILES
    )


def _call(
    graph: GraphModule,
    input: Node,
    weight: Node,
    padding: tuple[int, ...],
    *,
    of_gradient: bool,
) -> Node:
    op = torch.ops.xpurt.winograd_trained.default
    return call(graph.graph, op, input, weight, list(padding), of_gradient)


def _call_by_channels_last() -> None:
    from torch._inductor.lowering import lowerings, make_fallback

    op = torch.ops.xpurt.winograd_trained.default
    if op not in lowerings:
        make_fallback(op, _take_channels_last, warn=False)  # type: ignore[no-untyped-call]


def _take_channels_last(node: Node, input: Any, *args: Any) -> tuple[Any, Any]:
    return (ExternKernel.require_channels_last(input), *args), {}


def fake(
    input: Tensor, weight: Tensor, padding: list[int], of_gradient: bool
) -> Tensor:
    """The result of `xpurt::winograd_trained`, without elements."""
    ones = [1, 1]
    taps = [weight.shape[1 if of_gradient else 0], 0, 3, 3]
    made = input.new_empty(output_sizes(input.shape, taps, ones, padding, ones))
    if input.is_contiguous():
        return made
    if input.is_contiguous(memory_format=torch.channels_last):
        return made.to(memory_format=torch.channels_last)
    return made
