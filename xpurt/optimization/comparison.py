"""Fused forwards beside the original ones, on a sample."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from xpurt.optimization.in_float64 import InFloat64, in_float64

# Beside twice the original's own error: units in the last place of the largest number.
_ULPS: Final = 4


class Comparison:
    """`failures`: why the fused form of a module is not to be used."""

    def __init__(self) -> None:
        self.failures: dict[nn.Module, str] = {}

    def call(
        self,
        module: nn.Module,
        original: Callable[..., Any],
        fused: Callable[..., Any],
        args: tuple[Tensor, ...],
    ) -> Any:
        """The result of the fused form, or the original's if that differs by more than
        rounding. Either may write to its arguments."""
        copies = tuple(each.clone() for each in args)
        # In float64 from the start: what is written to a copy of it would be lost.
        wide = tuple(in_float64(each.clone()) for each in args)
        with as_written():
            expected = original(module, *args)
            with InFloat64():
                exact = _outcome(original, module, *wide)
        found = _outcome(fused, module, *copies)
        if isinstance(exact, Exception):
            why: str | None = f"it can't be compared in float64: {exact}"
        elif isinstance(found, Exception):  # of a form that does not fit this module
            why = f"the fused form raised {found}"
        else:
            why = difference_of(expected, found, exact) or difference_of(
                args, copies, wide
            )
        if why is None:
            return found
        self.failures[module] = why
        return expected


def _outcome(call: Callable[..., Any], *args: Any) -> Any:
    """The result of a call, or the exception that it raises."""
    try:
        return call(*args)
    except Exception as error:
        return error


_now: Comparison | None = None
_as_written = False


def runs_as_written() -> bool:
    """Whether no primitive is to be taken now."""
    return _as_written


@contextmanager
def as_written() -> Iterator[None]:
    global _as_written
    before, _as_written = _as_written, True
    try:
        yield
    finally:
        _as_written = before


def comparison() -> Comparison | None:
    """The one that calls are part of now."""
    return _now


@contextmanager
def comparing(now: Comparison | None) -> Iterator[None]:
    global _now
    before, _now = _now, now
    try:
        yield
    finally:
        _now = before


def difference_of(expected: Any, found: Any, exact: Any) -> str | None:
    """Why `found` is not `expected` but for rounding; None if it is. exact: the same in
    float64."""
    (one, of_one), (other, of_other), (third, of_third) = (
        pytree.tree_flatten(each) for each in (expected, found, exact)
    )
    if not of_one == of_other == of_third:
        return "the optimized form gave another structure"
    for a, b, c in zip(one, other, third, strict=True):
        if not isinstance(a, Tensor):
            if not isinstance(b, type(a)) or a != b:
                return f"the optimized form gave {b}, not {a}"
        elif (distance := _distance(a, b, c)) is not None:
            return f"it differed by {distance}"
    return None


def _distance(a: Tensor, b: Tensor, exact: Tensor) -> str | None:
    """What is wrong with `b`, which should be `a` but for rounding; None if nothing.
    exact: the same in float64. The error of `b` may be twice that of `a`, and some units
    in the last place more."""
    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
        return f"{b.dtype} {list(b.shape)}, not {a.dtype} {list(a.shape)}"
    if a.numel() == 0:
        return None
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
    allowed = 2 * own + _ULPS * torch.finfo(_computed_in(a)).eps * largest
    return None if worst <= allowed else f"{worst:.2g}, where {allowed:.2g} is rounding"


def _computed_in(result: Tensor) -> torch.dtype:
    kind = result.device.type
    lower = torch.is_autocast_enabled(kind) and result.dtype is torch.float32
    return torch.get_autocast_dtype(kind) if lower else result.dtype
