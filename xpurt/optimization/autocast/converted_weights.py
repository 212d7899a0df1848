"""Weights in the dtype and the layout of a block of autocast, made once per version: see
Note [Packs of a weight]."""

from collections.abc import Callable, Hashable

import torch
from torch import Tensor

from xpurt import _layouts
from xpurt.optimization.packed_weights import WriteWatch, has_packs, packed


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
        and _layouts.fills_memory(weight)
    )
