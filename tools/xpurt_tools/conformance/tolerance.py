"""The allowed difference between a result on xpu and the CPU's."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from xpurt.testing import Comparison, Disagreement


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The bounds of `torch.testing.assert_close`; None and None are its defaults."""

    rtol: float | None = None
    atol: float | None = None

    def admits(self, expected: Any, actual: Any) -> bool:
        """Whether the trees agree. Strides are not compared; the trial does that."""
        try:
            Comparison(self.rtol, self.atol, strides=False)("", expected, actual)
        except Disagreement:
            return False
        return True


# The defaults of assert_close, which has no public name for them.
_DEFAULTS = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
    torch.complex32: (1e-3, 1e-5),
}

# In the half types an op that adds many values rounds at the ends of its partial sums,
# and these ends differ between two devices. The bounds are two units in the last place,
# and the same share of the values that were added. Gradients are such sums.
_HALF = {
    torch.float16: (2e-3, 2e-3),
    torch.complex32: (2e-3, 2e-3),
    torch.bfloat16: (1.6e-2, 1e-2),
}


def tolerance(info: Any, dtype: torch.dtype) -> Tolerance:
    """The widest of three bounds: assert_close's default for `dtype`, ours for the half
    types, and those of PyTorch's own tests of this entry."""
    bounds = [
        bound for bound in (_DEFAULTS.get(dtype), _HALF.get(dtype)) if bound is not None
    ]
    if not bounds:
        return Tolerance()
    bounds += _overrides(getattr(info, "decorators", None) or (), dtype)
    return Tolerance(max(rtol for rtol, _ in bounds), max(atol for _, atol in bounds))


def _overrides(
    decorators: Iterable[Any], dtype: torch.dtype
) -> Iterator[tuple[float, float]]:
    for decorate in decorators:
        if not hasattr(decorate, "decorators"):
            inner, applies = [decorate], True
        else:
            inner = decorate.decorators
            applies = (
                decorate.active_if is True
                and decorate.device_type in (None, "cpu", "xpu")
                and (decorate.dtypes is None or dtype in decorate.dtypes)
            )
        for decorator in inner:
            by_dtype = getattr(decorator, "d", None)
            if not applies or not isinstance(by_dtype, dict) or dtype not in by_dtype:
                continue
            bound = by_dtype[dtype]
            if hasattr(bound, "rtol"):
                yield bound.rtol, bound.atol
            else:  # precisionOverride: one number, for atol
                yield 0.0, float(bound)
