"""Which of two forms of a graph is faster, found in a bounded number of calls. Pure: uses
no clock and no device.

Note [Rounds that end]
~~~~~~~~~~~~~~~~~~~~~~
Of a graph with frozen parameters one form is kept for good, see Note [Frozen graphs in
two forms]. So its first calls are rounds as those of Note [Paired rounds], and they end
with an answer. Their number depends on what was measured, as in sequential analysis
(Wald, 1945). Noise makes a time longer, never shorter. So a form's least time counts as
known once a second one is about the same. The rounds end once both are known and are no
near tie, or at their greatest number. Then the least time decides.

A fixed number of three rounds was rejected: with four other programs on two processors
it kept native code of 93 ms in place of kernels of 82 ms.
"""

import heapq
from typing import Final

from xpurt.compiler.paired_rounds import FIRST_ROUNDS, Turn

MOST_ROUNDS: Final = 12

# Fractions of a time: within the first a second time confirms the least one; two forms
# whose times differ by less than the second are a near tie.
_REPEATED: Final = 0.02
_NEAR: Final = 0.05


class SequentialRounds:
    """The first calls of a graph of one size."""

    def __init__(self) -> None:
        self._times: dict[bool, list[float]] = {False: [], True: []}
        self._turns: list[Turn] = []  # of the round that is underway

    def next(self) -> Turn:
        """How the next call runs."""
        if not self._turns:
            turns = [
                Turn(kernels, timed)
                for kernels in (False, True)
                for timed in (False, True)
            ]
            self._turns = turns[::-1]
        return self._turns.pop()

    def record(self, kernels: bool, us: float) -> None:
        """Records the time of a timed call."""
        self._times[kernels].append(us)

    def measured_us(self, *, kernels: bool) -> float | None:
        """The least time; None before the first one."""
        return min(self._times[kernels], default=None)

    def faster(self) -> bool | None:
        """Whether kernels take less time; None if that is not known yet."""
        rounds = min(len(each) for each in self._times.values())
        if rounds < FIRST_ROUNDS:
            return None
        native, kernels = min(self._times[False]), min(self._times[True])
        differ = abs(native - kernels) >= _NEAR * max(native, kernels)
        known = all(_is_repeated(each) for each in self._times.values())
        if rounds < MOST_ROUNDS and not (differ and known):
            return None
        return kernels < native


def _is_repeated(times: list[float]) -> bool:
    least, second = heapq.nsmallest(2, times)
    return second <= (1 + _REPEATED) * least
