"""An optimized model beside the original, on a sample."""

from typing import Any, Final

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

# Beside twice the original's own error: units in the last place of the largest number.
_ULPS: Final = 4


def difference_of(
    expected: Any, found: Any, exact: Any, scale: float = 0.0
) -> str | None:
    """Why `found` is not `expected` but for rounding; None if it is. exact: the same in
    float64. scale: of the terms, where results are small because terms cancel."""
    (one, of_one), (other, of_other), (third, of_third) = (
        pytree.tree_flatten(each) for each in (expected, found, exact)
    )
    if not of_one == of_other == of_third:
        return "the optimized form gave another structure"
    for a, b, c in zip(one, other, third, strict=True):
        if not isinstance(a, Tensor):
            if not isinstance(b, type(a)) or a != b:
                return f"the optimized form gave {b}, not {a}"
        elif (distance := _distance(a, b, c, scale)) is not None:
            return f"it differed by {distance}"
    return None


def _distance(a: Tensor, b: Tensor, exact: Tensor, scale: float) -> str | None:
    """What is wrong with `b`, which should be `a` but for rounding; None if nothing.
    exact: the same in float64. The error of `b` may be twice that of `a`, and some units
    in the last place more."""
    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
        return f"{b.dtype} {list(b.shape)}, not {a.dtype} {list(a.shape)}"
    if a.numel() == 0:
        return None
    if a.is_complex():
        a, b, exact = (
            torch.view_as_real(each.resolve_conj())
            for each in (a, b, exact.to(torch.complex128))
        )
    if not a.is_floating_point():
        return None if torch.equal(a, b) else "its values"
    one, other, exact = a.double(), b.double(), exact.double()
    finite = one.isfinite() & other.isfinite()
    same = (one == other) | (one.isnan() & other.isnan())
    if not bool((finite | same).all()):
        return "which of its values are finite"
    if not bool(finite.any()):
        return None
    own, worst, largest = (
        float(each[finite].abs().max()) for each in (one - exact, other - exact, exact)
    )
    allowed = 2 * own + _ULPS * torch.finfo(_computed_in(a)).eps * max(largest, scale)
    return None if worst <= allowed else f"{worst:.2g}, where {allowed:.2g} is rounding"


def _computed_in(result: Tensor) -> torch.dtype:
    kind = result.device.type
    lower = torch.is_autocast_enabled(kind) and result.dtype is torch.float32
    return torch.get_autocast_dtype(kind) if lower else result.dtype
