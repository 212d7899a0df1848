"""Two forms of one compiled graph, of which each call runs one.

Note [Measured forms]
~~~~~~~~~~~~~~~~~~~~~
Where the host reads the device's memory a graph can be native code or kernels. Which is
faster depends on the functions in it: of ten on 16 million elements, kernels took 0.58
of the time; of cheap ops 1.55 (form_estimate.py has a time per function). So a graph
whose kernels may pay is compiled in both forms, and its calls measure both: see Note
[Paired rounds]. A call runs one form only, since it may write to its inputs.

Calls of other sizes are measured apart, by the power of two of each size.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import Tensor

from xpurt import _C
from xpurt.compiler.call_time import clock_for
from xpurt.compiler.form_estimate import Estimate
from xpurt.compiler.paired_rounds import PairedRounds, Rounds, Turn
from xpurt.compiler.warn_once import warn_once
from xpurt.mapping import ExplainedGraph, FormTimes, explain_graph, is_explaining

Code = Callable[[list[Any]], Sequence[Any]]

# Expected time of building a kernel, if it is not in the disk cache.
BUILD_US = 150_000.0


class FormChoice:
    """Compiled code in two forms. See Note [Measured forms].

    written: the positions of the inputs that the graph writes to.
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
        written: Collection[int],
        build_us: float,
    ) -> None:
        self.native = native
        self.kernels: Any = kernels  # None if they failed
        self.index = index
        self.estimate = estimate
        self.written = written
        self.build_us = build_us
        self.clock = clock_for(index)
        self._rounds: dict[tuple[int, ...], PairedRounds] = {}
        self._one_thread = threading.Lock()

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        if self.kernels is None:
            return self.native(inputs)
        if not _C.learns() or not _C.host_reads(self.index):
            return self._without_times(inputs)
        with self._one_thread:
            rounds = self._rounds_of(inputs)
            turn = rounds.next()
        if is_explaining():
            explain_graph(self._explained(turn, rounds))
        if turn.timed:
            return self._timed(turn, rounds, inputs)
        if turn.kernels:
            return self._by_kernels(rounds, inputs)
        return self.native(inputs)

    def _without_times(self, inputs: list[Any]) -> Sequence[Any]:
        """Results repeat bit for bit, an XPU graph is recorded, or the mapping changed
        to one whose memory the host does not read."""
        must = torch.xpu.is_current_stream_capturing() or not _C.host_reads(self.index)
        return (self.kernels if must else self.native)(inputs)

    def _rounds_of(self, inputs: list[Any]) -> Rounds:
        key = tuple([each.bit_length() for each in inputs if isinstance(each, int)])
        found = self._rounds.get(key)
        if found is None:
            expected = self.estimate
            found = self._rounds[key] = PairedRounds(
                expected.native_us, expected.kernels_us, self.build_us
            )
        return found

    def _timed(self, turn: Turn, rounds: Rounds, inputs: list[Any]) -> Sequence[Any]:
        stream = torch.xpu.current_stream(self.index)
        stream.synchronize()
        elapsed_us = self.clock()
        kernels = self.kernels if turn.kernels else None
        results: Sequence[Any] = (kernels or self.native)(inputs)
        stream.synchronize()
        rounds.record(turn.kernels, elapsed_us())
        return results

    def _by_kernels(self, rounds: Rounds, inputs: list[Any]) -> Sequence[Any]:
        kernels = self.kernels
        if kernels is None:  # they failed in another thread, meanwhile
            return self.native(inputs)
        if rounds.measured_us(kernels=True) is None:
            return self._tried(kernels, inputs)
        results: Sequence[Any] = kernels(inputs)
        return results

    def _explained(self, turn: Turn, rounds: Rounds) -> ExplainedGraph:
        expected = self.estimate
        return ExplainedGraph(
            "kernels" if turn.kernels else "native code",
            FormTimes(expected.native_us, rounds.measured_us(kernels=False)),
            FormTimes(expected.kernels_us, rounds.measured_us(kernels=True)),
        )

    def _tried(self, kernels: Code, inputs: list[Any]) -> Sequence[Any]:
        """A call before kernels were timed. If they fail, native code computes it and
        all others."""
        kept = list(inputs)
        copies: dict[int, Tensor] = {}
        # An error of earlier work is raised here: it is no failure of the kernels.
        torch.xpu.current_stream(self.index).synchronize()
        try:
            copies = {at: kept[at].detach().clone() for at in self.written}
            return kernels(inputs)
        except RuntimeError as error:
            self.kernels = None
            warn_once(
                "torch.compile goes on with native code: kernels failed. "
                f"{str(error).strip().splitlines()[0]}"
            )
        for at, copy in copies.items():
            kept[at].detach().copy_(copy)
        return self.native(kept)
