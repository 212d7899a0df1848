"""Which of two forms a module runs: as written, or optimized.

Note [Optimized models that take longer]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
What a primitive gains depends on the processor, on its libraries and on the sizes; the
guards of a graph and the choice of a primitive cost up to 100 us per call. On an AMD EPYC
with AVX2, two linear layers of 64 took 26 us as written and 190 us as primitives, and
oneDNN's product in float32 takes 1.3 times that of MKL. No rule of sizes tells that. So
the first calls measure both forms, see Note [Rounds that end] of the compiler, and the
faster one stays, for inputs of about that size. A call runs one form only.

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
from xpurt.compiler.sequential_rounds import SequentialRounds
from xpurt.optimization.comparison import as_written, requested_form

Call = Callable[[], Any]
# Told when the rounds for inputs of one size end: the least microseconds of both forms.
Decided = Callable[[float, float], object]


class MeasuredForms:
    """The two forms of one module."""

    def __init__(self, decided: Decided) -> None:
        self._decided = decided
        self._rounds: dict[Any, SequentialRounds] = {}
        self._faster: dict[Any, bool] = {}  # whether the optimized form is
        self._lock = threading.Lock()

    @property
    def is_decided(self) -> bool:
        return len(self._faster) == len(self._rounds) > 0

    @property
    def times_ms(self) -> tuple[float, float] | None:
        """Of both forms, for inputs of the first size; None if they are not measured."""
        for rounds in self._rounds.values():
            before = rounds.measured_us(kernels=False)
            after = rounds.measured_us(kernels=True)
            if before is not None and after is not None:
                return before / 1e3, after / 1e3
        return None

    def run(
        self, written: Call, optimized: Call, args: tuple[Any, ...], kwargs: Any
    ) -> Any:
        """The result of one of the two calls, which take the arguments."""
        if not measures():
            return optimized()
        key, x = _about_the_size_of(args, kwargs)
        faster = self._faster.get(key)
        if faster is not None:
            if faster:
                return optimized()
            return _as_written(written)
        with self._lock:
            rounds = self._rounds.setdefault(key, SequentialRounds())
            turn = rounds.next()
        call = optimized if turn.kernels else lambda: _as_written(written)
        if not turn.timed:
            return call()
        result, us = _timed(call, x)
        with self._lock:
            rounds.record(turn.kernels, us)
            self._settle(key, rounds)
        return result

    def _settle(self, key: Any, rounds: SequentialRounds) -> None:
        faster = rounds.faster()
        if faster is not None and key not in self._faster:
            self._faster[key] = faster
            before = rounds.measured_us(kernels=False)
            after = rounds.measured_us(kernels=True)
            assert before is not None
            assert after is not None
            self._decided(before, after)


def measures() -> bool:
    """Whether a call now may run either form, and is measured."""
    return (
        requested_form() is None
        and _C.learns()
        and not torch.are_deterministic_algorithms_enabled()
    )


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
