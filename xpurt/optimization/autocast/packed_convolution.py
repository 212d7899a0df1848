"""A convolution whose weight is in the layout of oneDNN's own choice.

PyTorch reorders a weight in each call. Packed, it is reordered once per version. On the
CPU these are the ops that Inductor's freezing uses; on xpu those of xpurt's compiler.
"""

import functools
from collections.abc import Hashable
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor

from xpurt import _layouts, mapping
from xpurt.functional.convolutions import CHANNELS_LAST, by_axis, output_sizes
from xpurt.optimization.autocast.converted_weights import can_be_kept, converted
from xpurt.optimization.packed_weights import WriteWatch
from xpurt.optimization.primitives import types_of_cpu

# On xpu the op with a packed weight costs more per call than PyTorch's, about 60 us on an
# AMD EPYC (2026-11-26), so weights of fewer elements are reordered in each call.
SMALLEST: Final = 1 << 15


def packed_convolution(
    watch: WriteWatch | None,
    images: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor | None:
    """The convolution, without gradients; None where PyTorch's function has to compute
    it, or to raise its error.

    images, bias: of the dtype to compute in; images in channels last.
    """
    if isinstance(padding, str) or not can_be_kept(weight):
        return None
    given = (_hashable(stride), _hashable(padding), _hashable(dilation), groups)
    lists = sound_lists(*given, images.shape, weight.shape)
    if lists is None or (bias is not None and bias.shape != weight.shape[:1]):
        return None
    operands = images, weight, bias
    if images.device.type == "cpu":
        return _on_cpu(*operands, lists, (given, images.dtype), watch)
    return _on_xpu(*operands, lists, (given, images.dtype, images.shape), watch)


class _Lists(NamedTuple):
    """One number per axis in each."""

    stride: list[int]
    padding: list[int]
    dilation: list[int]
    groups: int


def _hashable(given: Any) -> Any:
    return given if isinstance(given, int) else tuple(given)


@functools.lru_cache(maxsize=1024)
def sound_lists(
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    sizes: torch.Size,
    window: torch.Size,
) -> _Lists | None:
    """None if PyTorch would raise an error."""
    axes = len(window) - 2
    lists = _Lists(
        by_axis(stride, axes), by_axis(padding, axes), by_axis(dilation, axes), groups
    )
    is_sound = (
        groups > 0
        and window[1] * groups == sizes[1]
        and window[0] % groups == 0
        and axes == len(lists.stride) == len(lists.padding) == len(lists.dilation)
        and min(lists.stride) > 0
        and min(lists.padding) >= 0
        and min(lists.dilation) > 0
        and min(output_sizes(sizes, window, *lists[:3])[2:]) > 0
    )
    return lists if is_sound else None


def _on_cpu(
    images: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    lists: _Lists,
    form: Hashable,
    watch: WriteWatch | None,
) -> Tensor | None:
    dtype = images.dtype
    if not torch._C._get_mkldnn_enabled() or dtype not in types_of_cpu():
        return None
    arguments = lists.padding, lists.stride, lists.dilation, lists.groups

    def pack(weight: Tensor) -> Tensor:
        reorder = torch.ops.mkldnn._reorder_convolution_weight.default
        packed: Tensor = reorder(weight.to(dtype), *arguments, None)
        return packed

    packed = converted(weight, form, pack, watch)
    rest: tuple[Any, ...] = (packed, bias, *arguments, "none", [], "")
    _layouts.keep_call("mkldnn::_convolution_pointwise", (None, *rest))
    result: Tensor = torch.ops.mkldnn._convolution_pointwise.default(images, *rest)
    return result


def _on_xpu(
    images: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    lists: _Lists,
    form: Hashable,
    watch: WriteWatch | None,
) -> Tensor | None:
    # A packed weight is for one device.
    devices = mapping.current_placement().ordinals[images.device.index]
    if weight.numel() < SMALLEST or len(devices) != 1:
        return None
    after = "none", 1.0, 0.0, CHANNELS_LAST, CHANNELS_LAST
    rest = bias, None, list(weight.shape), *lists, *after

    def pack(weight: Tensor) -> Tensor:
        op = torch.ops.xpurt.pack_convolution_weight.default
        packed: Tensor = op(images, weight.to(images.dtype), *rest)
        return packed

    packed = converted(weight, form, pack, watch)
    if packed.numel() == 0:
        return None
    _layouts.keep_call("xpurt::fused_convolution", (None, packed, *rest))
    result: Tensor = torch.ops.xpurt.fused_convolution.default(images, packed, *rest)
    return result
