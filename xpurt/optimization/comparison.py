"""Fused forwards beside the original ones, on a sample."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

# How far results may be apart, as a part of the largest magnitude.
_TOLERANCES: Final = {
    torch.float64: 1e-9,
    torch.float32: 1e-4,
    torch.float16: 2e-2,
    torch.bfloat16: 1e-1,
}


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
        """The original's result. Either may write to its arguments."""
        copies = [each.clone() for each in args]
        expected = original(module, *args)
        with comparing(None):
            try:
                found = fused(module, *copies)
            except Exception as error:  # of a form that does not fit this module
                self.failures[module] = f"the fused form raised {error}"
                return expected
        for one, other in ((expected, found), (args, tuple(copies))):
            if (difference := _difference(one, other)) is not None:
                self.failures[module] = difference
        return expected


_now: Comparison | None = None


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


def _difference(expected: Any, found: Any) -> str | None:
    one, of_one = pytree.tree_flatten(expected)
    other, of_other = pytree.tree_flatten(found)
    if of_one != of_other:
        return "the fused form gave another structure"
    for a, b in zip(one, other, strict=True):
        if not isinstance(a, Tensor):
            if not isinstance(b, type(a)) or a != b:
                return f"the fused form gave {b}, not {a}"
        elif (distance := distance_of(a, b)) is not None:
            return f"the fused form differed by {distance}"
    return None


def distance_of(a: Tensor, b: Tensor) -> str | None:
    """What is wrong with `b`, which should be `a` but for rounding; None if nothing."""
    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
        return f"{b.dtype} {list(b.shape)}, not {a.dtype} {list(a.shape)}"
    if a.numel() == 0:
        return None
    if not a.is_floating_point():
        return None if torch.equal(a, b) else "its values"
    far = (a.double() - b.double()).abs()
    far = far[~(a.isnan() & b.isnan()) & ~(a == b)]
    if far.numel() == 0:
        return None
    kind = a.device.type
    lower = torch.is_autocast_enabled(kind) and a.dtype is torch.float32
    computed_in = torch.get_autocast_dtype(kind) if lower else a.dtype
    allowed = _TOLERANCES[computed_in] * float(a[a.isfinite()].abs().max())
    worst = float(far.max())
    return None if worst <= allowed else f"{worst:.2g}, where {allowed:.2g} is rounding"
