"""Two forms of one compiled graph, of which each call runs one.

Note [Measured forms]
~~~~~~~~~~~~~~~~~~~~~
Where the host reads the device's memory a graph can be native code or kernels. Which is
faster depends on the functions in it: of ten on 16 million elements, kernels took 0.58
of the time; of cheap ops 1.55 (form_estimate.py has a time per function). So a graph
whose kernels may pay is compiled in both forms, and its calls measure both: see Note
[Two forms] in csrc/schedule/planning/two_forms.h. A call runs one form only, since it
may write to its inputs.

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
from xpurt.compiler.warn_once import warn_once
from xpurt.mapping import ExplainedGraph, FormTimes, explain_graph, is_explaining

Code = Callable[[list[Any]], Sequence[Any]]

# Expected time of building a kernel, if it is not in the disk cache.
BUILD_US = 150_000.0

# The price of a trial has that many calls of kernels, about those of the first rounds.
_TRIED_CALLS = 3
# Kernels save at least that fraction of a call of native code, as far as the price of
# a trial is concerned.
_LEAST_SAVED = 0.01


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
        self._forms: dict[tuple[int, ...], _C.TwoForms] = {}
        self._one_thread = threading.Lock()

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        if self.kernels is None:
            return self.native(inputs)
        if not _C.learns() or not _C.host_computes(self.index):
            return self._without_times(inputs)
        with self._one_thread:
            forms = self._forms_of(inputs)
            by_kernels, timed = forms.next()
        if is_explaining():
            explain_graph(self._explained(by_kernels, forms))
        if timed:
            return self._timed(by_kernels, forms, inputs)
        if by_kernels:
            return self._by_kernels(forms, inputs)
        return self.native(inputs)

    def _without_times(self, inputs: list[Any]) -> Sequence[Any]:
        """Results repeat bit for bit, an XPU graph is recorded, or the mapping changed
        to one whose memory the host does not read."""
        must = torch.xpu.is_current_stream_capturing() or not _C.host_computes(
            self.index
        )
        return (self.kernels if must else self.native)(inputs)

    def _forms_of(self, inputs: list[Any]) -> _C.TwoForms:
        """Native code and kernels, for inputs of about these sizes."""
        key = tuple([each.bit_length() for each in inputs if isinstance(each, int)])
        found = self._forms.get(key)
        if found is None:
            native_us, kernels_us = self.estimate.native_us, self.estimate.kernels_us
            found = self._forms[key] = _C.TwoForms(
                price_us=self.build_us + _TRIED_CALLS * kernels_us,
                lost_us=max(native_us - kernels_us, _LEAST_SAVED * native_us),
                ends=False,
            )
        return found

    def _timed(
        self, by_kernels: bool, forms: _C.TwoForms, inputs: list[Any]
    ) -> Sequence[Any]:
        stream = torch.xpu.current_stream(self.index)
        stream.synchronize()
        elapsed_us = self.clock()
        kernels = self.kernels if by_kernels else None
        results: Sequence[Any] = (kernels or self.native)(inputs)
        stream.synchronize()
        forms.record(by_kernels, elapsed_us())
        return results

    def _by_kernels(self, forms: _C.TwoForms, inputs: list[Any]) -> Sequence[Any]:
        kernels = self.kernels
        if kernels is None:  # they failed in another thread, meanwhile
            return self.native(inputs)
        if forms.least_us(True) == 0:
            return self._tried(kernels, inputs)
        results: Sequence[Any] = kernels(inputs)
        return results

    def _explained(self, by_kernels: bool, forms: _C.TwoForms) -> ExplainedGraph:
        expected = self.estimate
        return ExplainedGraph(
            "kernels" if by_kernels else "native code",
            FormTimes(expected.native_us, forms.least_us(False) or None),
            FormTimes(expected.kernels_us, forms.least_us(True) or None),
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
