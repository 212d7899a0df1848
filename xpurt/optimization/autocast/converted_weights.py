"""Weights in the dtype and the layout of a block of autocast, made once per version.

Note [When a converted weight is valid]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
torch.autocast keeps converted weights until its outermost block ends, and only of leaves
that require gradients. Here they are kept as long as the parameter lives and has the
same version, storage and strides: an optimizer's step, `load_state_dict` and other
writes under `torch.no_grad()` raise the version. A write through `.data` or through
memory that another program shares does not. So in each outermost block, at first use,
elements of the weight are compared with those of the conversion: see weight_sample.py. A
write that none of these shows has to be made on the parameter itself.
"""

import weakref
from collections.abc import Callable, Hashable
from typing import Any, Final

import torch
from torch import Tensor

from xpurt import mapping
from xpurt.optimization.autocast.weight_sample import WeightSample, reach
from xpurt.optimization.weight_version import WeightVersion

_FORMS: Final = 4  # conversions that are kept of one weight


class _Entry:
    """The conversions of one version of a weight."""

    def __init__(self, weight: Tensor, block: object) -> None:
        self.writes = weight._version
        self.version = WeightVersion(weight)
        self.sample = WeightSample(weight)
        self.block = block
        self.forms: dict[Hashable, Tensor] = {}

    def is_valid(self, weight: Tensor, block: object) -> bool:
        if self.block is block:
            # Other memory comes by `weight.data = ...`, which makes another `block`.
            return self.writes == weight._version
        if not self.version.is_of(weight):
            return False
        if not self.sample.is_of(weight):
            return False
        self.block = block
        return True

    def converted(
        self, weight: Tensor, form: Hashable, convert: Callable[[Tensor], Tensor]
    ) -> Tensor:
        with torch.no_grad():
            made = convert(weight.detach())
        while len(self.forms) >= _FORMS:
            self.forms.pop(next(iter(self.forms)))
        self.forms[form] = made
        return made


def _fills_memory(weight: Tensor) -> bool:
    """Whether no two elements share memory, as those of an expanded tensor do."""
    return reach(weight) >= weight.numel() - 1


_entries: dict[int, tuple["weakref.ref[Tensor]", _Entry]] = {}


def converted(
    weight: Tensor,
    form: Hashable,
    convert: Callable[[Tensor], Tensor],
    block: object,
) -> Tensor:
    """`convert(weight)`, without gradients, made once per version of the weight.

    form: what distinguishes this conversion from others of the same weight.
    block: the outermost block of autocast, None if nothing is to be kept.
    """
    key = id(weight)
    known = _entries.get(key)
    entry = known[1] if known is not None else None
    if block is None or entry is None or not entry.is_valid(weight, block):
        if block is None or not _has_versions(weight):
            with torch.no_grad():
                return convert(weight.detach())
        entry = _Entry(weight, block)
        _entries[key] = weakref.ref(weight, lambda _: _entries.pop(key, None)), entry
    found = entry.forms.get(form)
    return entry.converted(weight, form, convert) if found is None else found


def can_be_kept(weight: Tensor) -> bool:
    """Whether conversions of the weight are kept."""
    return id(weight) in _entries or _has_versions(weight)


def _has_versions(weight: Tensor) -> bool:
    """Whether versions of the weight can be told apart, and it is used again: a leaf of
    its own memory."""
    return (
        weight.is_leaf
        and not weight.is_inference()
        and weight._base is None
        and weight.numel() > 0
        and _fills_memory(weight)
    )


def forget() -> None:
    """Drops all conversions: a packed weight is for one device."""
    _entries.clear()


mapping.on_change(forget)


def count() -> int:
    """How many weights have conversions."""
    return len(_entries)


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
