"""Weights in the dtype and the layout of a block of autocast, made once per version: see
Note [Packs of a weight]."""

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor

from xpurt.optimization.packed_weights import WriteWatch, has_packs, packed
from xpurt.optimization.weight_sample import reach


def converted(
    weight: Tensor,
    form: Hashable,
    convert: Callable[[Tensor], Tensor],
    watch: WriteWatch | None,
) -> Tensor:
    """`convert(weight)`, without gradients, made once per version of the weight.

    form: what distinguishes this conversion from others of the same weight.
    watch: how writes are noticed, None if nothing is to be kept.
    """
    if watch is None or not can_be_kept(weight):
        with torch.no_grad():
            return convert(weight.detach())
    made: Tensor = packed((weight,), form, lambda: convert(weight.detach()), watch)
    return made


def can_be_kept(weight: Tensor) -> bool:
    """Whether conversions of the weight are kept: versions of it can be told apart, and it
    is used again, as a leaf of its own memory."""
    return has_packs(weight) or (
        weight.is_leaf
        and not weight.is_inference()
        and weight._base is None
        and weight.numel() > 0
        and _fills_memory(weight)
    )


def _fills_memory(weight: Tensor) -> bool:
    """Whether no two elements share memory, as those of an expanded tensor do."""
    return reach(weight) >= weight.numel() - 1


class _Converted(torch.autograd.Function):
    """A converted tensor as a function of what it was made from, whose gradient is plain
    where that tensor is."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, made: "_Made") -> Tensor:
        ctx.is_plain = weight.is_contiguous()
        return made.tensor.detach()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        # Autograd gives it the dtype of the weight.
        return grads[0].contiguous() if ctx.is_plain else grads[0], None


class _Made:
    """A conversion that is no input of the function, so that it gets no gradient."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def differentiable(weight: Tensor, made: Tensor) -> Tensor:
    """The conversion `made` of a weight or an input, with a gradient."""
    result: Tensor = _Converted.apply(weight, _Made(made))  # type: ignore[no-untyped-call]
    return result
