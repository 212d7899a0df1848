"""Convolutions and linear layers in the dtype and layout of a block of autocast.

Each function has the arguments of PyTorch's op, after how weights are watched, None if no
weights are to be kept. It returns None where PyTorch's own function is to run, under
torch.autocast: for operands that autocast leaves alone, and such as oneDNN has no layout for.
A convolution whose weight is a leaf that wants a gradient is computed in C++: see Note
[Trained convolutions].
"""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor

from xpurt import _layouts
from xpurt.functional.convolutions import channels_last, is_channels_last
from xpurt.optimization.autocast.converted_weights import can_be_kept, converted
from xpurt.optimization.autocast.packed_convolution import packed_convolution
from xpurt.optimization.packed_weights import WriteWatch


def _dtype(input: Any, weight: Any) -> torch.dtype | None:
    """The dtype in which an op with these operands computes; None if it is left alone."""
    if type(input) is not Tensor or type(weight) not in (Tensor, torch.nn.Parameter):
        return None
    return _layouts.type_in_block(input, weight)


def _wants_gradient(*operands: Any) -> bool:
    return torch.is_grad_enabled() and any(
        isinstance(each, Tensor) and each.requires_grad for each in operands
    )


def _in_dtype(
    watch: WriteWatch | None, value: Tensor | None, dtype: torch.dtype
) -> Any:
    """A bias, or a weight that needs no layout."""
    if value is None or value.dtype == dtype:
        return value
    if _wants_gradient(value):
        return value.to(dtype)
    return converted(value, dtype, lambda each: each.to(dtype), watch)


def _weight(watch: WriteWatch | None, weight: Tensor, dtype: torch.dtype) -> Tensor:
    """The weight in the layout, with a gradient if one is wanted."""
    if weight.dtype == dtype and is_channels_last(weight):
        return weight

    def convert(each: Tensor) -> Tensor:
        return _layouts.in_layout(each, dtype)

    if _wants_gradient(weight):
        return convert(weight)
    return converted(weight, ("channels last", dtype), convert, watch)


def _convolution(function: Any, can_pack: bool = False) -> Callable[..., Tensor | None]:
    """function: PyTorch's. can_pack: whether there is a form with a packed weight."""

    def run(
        watch: WriteWatch | None,
        input: Any,
        weight: Any,
        bias: Tensor | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Tensor | None:
        dtype = _dtype(input, weight)
        fits = (
            dtype is not None
            and input.dim() == weight.dim()
            and input.numel() > 0
            and channels_last(input.dim()) is not None
        )
        if not fits or dtype is None:
            return None
        images = _layouts.images_in_layout(input, dtype)
        result = None
        if can_pack and watch and not _wants_gradient(input, weight, bias):
            cast_bias = _in_dtype(watch, bias, dtype)
            result = packed_convolution(
                watch, images, weight, cast_bias, *args, **kwargs
            )
        if result is None:
            in_layout = _weight(watch, weight, dtype)
            cast_bias = _in_dtype(watch, bias, dtype)
            if can_be_kept(weight):
                _layouts.keep_op_itself(in_layout, cast_bias)
            result = function(images, in_layout, cast_bias, *args, **kwargs)
        _layouts.note_images(result, input, weight)
        made: Tensor = result
        return made

    return run


def _linear(
    watch: WriteWatch | None, input: Any, weight: Any, bias: Tensor | None = None
) -> Tensor | None:
    """A linear layer whose weight is cast once, where no gradient is wanted."""
    dtype = _dtype(input, weight)
    if dtype is None or weight.dtype == dtype or _wants_gradient(input, weight, bias):
        return None
    _layouts.make_plain(input)
    operands = _in_dtype(watch, weight, dtype), _in_dtype(watch, bias, dtype)
    if can_be_kept(weight):
        _layouts.keep_op_itself(*operands)
    return torch.nn.functional.linear(input, *operands)


LAYOUT_OPS: Final[dict[str, Callable[..., Tensor | None]]] = {
    "conv2d": _convolution(torch.conv2d, can_pack=True),
    "conv3d": _convolution(torch.conv3d, can_pack=True),
    "conv_transpose2d": _convolution(torch.conv_transpose2d),
    "conv_transpose3d": _convolution(torch.conv_transpose3d),
    "linear": _linear,
}
