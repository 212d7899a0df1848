"""Two forms of one compiled graph, of which each call runs one.

Note [Measured forms]
~~~~~~~~~~~~~~~~~~~~~
Where the host reads the device's memory a graph can be native code or kernels. Which is
faster depends on the functions in it: of ten on 16 million elements, kernels took 0.58
of the time; of cheap ops 1.55 (form_estimate.py has a time per function). So a graph
whose kernels may pay is compiled in both forms, and its calls are those of an op with
two candidates. The learner is that of eager ops: see Note [Exploration] in
csrc/schedule/exploration.cpp. Kernels are tried once the time that was lost without
them equals the price of the trial, by the rule of ski rental (Karlin, Manasse, Rudolph
and Sleator, 1988); timed samples cost a percent of the calls' time; the form that lost
is tried again, ever more rarely. A call runs one form only, since it may write to its
inputs. A timed sample begins and ends with an idle stream.

Calls of other sizes have a learner of their own, one per power of two of each size.

Rejected: a fixed number of calls of each form, since kernels of a short program would
be built for nothing; and a choice that is made once, since a device may get slower.
"""

import functools
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from xpurt import _C
from xpurt.compiler.form_estimate import Estimate
from xpurt.mapping import ExplainedGraph, FormTimes, explain_graph, is_explaining

Code = Callable[[list[Any]], Sequence[Any]]

# Expected time of building a kernel, if it is not in the disk cache.
BUILD_US = 150_000.0


@dataclass(slots=True)
class _Calls:
    """What is known about calls with inputs of about the same sizes."""

    learner: _C.Learner
    runs_kernels: bool = False
    left: int = 0  # calls that follow in the same way


class FormChoice:
    """Compiled code in two forms. See Note [Measured forms].

    written: whether the graph writes to its inputs.
    build_us: expected time until the kernels are built.
    """

    _boxed_call = True

    def __init__(
        self,
        native: Code,
        kernels: Code,
        index: int,
        estimate: Estimate,
        *,
        written: bool,
        build_us: float,
    ) -> None:
        self.native = native
        self.kernels: Any = kernels  # None if they failed
        self.index = index
        self.estimate = estimate
        self.written = written
        self.build_us = build_us
        self._calls: dict[tuple[int, ...], _Calls] = {}

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        if self.kernels is None:
            return self.native(inputs)
        if not _C.learns() or not _C.host_reads(self.index):
            return self._without_times(inputs)
        calls, timed = self._calls_like(inputs), False
        if calls.left > 0:
            calls.left -= 1
        else:
            found = calls.learner.next(self.build_us)
            calls.runs_kernels, timed, calls.left = found
        if is_explaining():
            explain_graph(self._explained(calls))
        if timed:
            return self._timed(calls.learner, inputs, kernels=calls.runs_kernels)
        return (self.kernels if calls.runs_kernels else self.native)(inputs)

    def _explained(self, calls: _Calls) -> ExplainedGraph:
        return ExplainedGraph(
            "kernels" if calls.runs_kernels else "native code",
            FormTimes(self.estimate.native_us, calls.learner.measured_us(kernel=False)),
            FormTimes(self.estimate.kernels_us, calls.learner.measured_us(kernel=True)),
        )

    def _without_times(self, inputs: list[Any]) -> Sequence[Any]:
        """Results repeat bit for bit, an XPU graph is recorded, or the mapping changed
        to one whose memory the host does not read."""
        must = torch.xpu.is_current_stream_capturing() or not _C.host_reads(self.index)
        return (self.kernels if must else self.native)(inputs)

    def _calls_like(self, inputs: list[Any]) -> _Calls:
        key = tuple([each.bit_length() for each in inputs if isinstance(each, int)])
        found = self._calls.get(key)
        if found is None:
            expected = self.estimate
            learner = _C.Learner(expected.native_us, expected.kernels_us)
            found = self._calls[key] = _Calls(learner)
        return found

    def _timed(
        self, learner: _C.Learner, inputs: list[Any], *, kernels: bool
    ) -> Sequence[Any]:
        stream = torch.xpu.current_stream(self.index)
        asked = time.perf_counter_ns()
        stream.synchronize()
        begin = time.perf_counter_ns()
        if kernels and learner.measured_us(kernel=True) is None:
            results = self._tried(inputs)
        else:
            results = (self.kernels if kernels else self.native)(inputs)
        returned = time.perf_counter_ns()
        stream.synchronize()
        end = time.perf_counter_ns()
        if self.kernels is not None:
            stall_us = (begin - asked + end - returned) / 1e3
            learner.record(kernels, (end - begin) / 1e3, stall_us)
        return results

    def _tried(self, inputs: list[Any]) -> Sequence[Any]:
        """A first call of the kernels. If they fail, native code computes this call and
        all others: the program did not ask for kernels."""
        kept = list(inputs)
        try:
            results: Sequence[Any] = self.kernels(inputs)
            return results
        except RuntimeError as error:
            if self.written:
                raise
            self.kernels = None
            _warn_once(
                "torch.compile goes on with native code: kernels failed. "
                f"{str(error).strip().splitlines()[0]}"
            )
        return self.native(kept)


@functools.cache
def _warn_once(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)
