"""Which of two forms a module runs: as written, or optimized.

Note [Optimized models that take longer]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
What a primitive gains depends on the processor, on its libraries and on the sizes; the
guards of a graph and the choice of a primitive cost up to 100 us per call. On an AMD EPYC
with AVX2, two linear layers of 64 took 26 us as written and 190 us as primitives, and
oneDNN's product in float32 takes 1.3 times that of MKL. No rule of sizes tells that. So
the first calls measure both forms, and one of them stays, for inputs of about that
size: see Note [Two forms] in csrc/schedule/planning/two_forms.h. A call runs one form
only.

Where results have to repeat bit for bit (`torch.use_deterministic_algorithms`), and with
XPURT_LEARN=0, nothing is measured: the optimized form runs.
"""

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from xpurt import _C
from xpurt.compiler.call_time import clock_for, processor_clock
from xpurt.optimization.requested_form import as_written, requested_form

Call = Callable[[], Any]
# Told when the form as written stays for inputs of one size: the least microseconds as
# written, and optimized.
WrittenStays = Callable[[float, float], object]


class MeasuredForms:
    """The two forms of one module."""

    def __init__(self, written_stays: WrittenStays) -> None:
        self._written_stays = written_stays
        self._forms: dict[Any, _C.TwoForms] = {}
        self._lock = threading.Lock()

    @property
    def is_decided(self) -> bool:
        found = [forms.decided for forms in self._forms.values()]
        return len(found) > 0 and None not in found

    @property
    def times_ms(self) -> tuple[float, float] | None:
        """Of both forms, for inputs of the first size; None if they are not measured."""
        for forms in self._forms.values():
            before, after = forms.least_us(False), forms.least_us(True)
            if before > 0 and after > 0:
                return before / 1e3, after / 1e3
        return None

    def run(
        self, written: Call, optimized: Call, args: tuple[Any, ...], kwargs: Any
    ) -> Any:
        """The result of one of the two calls, which take the arguments."""
        if not measures():
            return optimized()
        key, x = _about_the_size_of(args, kwargs)
        forms = self._forms.get(key)
        chosen = None if forms is None else forms.decided
        if chosen is not None:
            return optimized() if chosen else _as_written(written)
        with self._lock:
            forms = self._forms.setdefault(key, _C.TwoForms(0, 0, ends=True))
            is_optimized, timed = forms.next()
        call = optimized if is_optimized else lambda: _as_written(written)
        if not timed:
            return call()
        result, us = _timed(call, x)
        with self._lock:
            known = forms.decided
            forms.record(is_optimized, us)
            if known is None and forms.decided is False:
                self._written_stays(forms.least_us(False), forms.least_us(True))
        return result


def measures() -> bool:
    """Whether a call now may run either form, and is measured."""
    return requested_form() is None and _C.learns()


def _as_written(call: Call) -> Any:
    with as_written():
        return call()


def _timed(call: Call, x: Tensor | None) -> tuple[Any, float]:
    """The result, and the microseconds until it is there."""
    if x is None or x.device.type != "xpu":
        elapsed_us = processor_clock()
        return call(), elapsed_us()
    torch.xpu.synchronize(x.device)
    elapsed_us = clock_for(x.device.index or 0)()
    result = call()
    torch.xpu.synchronize(x.device)
    return result, elapsed_us()


def _about_the_size_of(args: tuple[Any, ...], kwargs: Any) -> tuple[Any, Tensor | None]:
    """What calls that are measured together have in common, and the first tensor."""
    tensors = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
    if not tensors:
        return None, None
    x, size = tensors[0], sum(each.numel() for each in tensors)
    kind = x.device.type
    key = x.device, x.dtype, len(tensors), torch.is_autocast_enabled(kind)
    return (*key, size.bit_length()), x
