"""When to measure which of the two forms of a graph. Pure: uses no clock and no device.

Note [Paired rounds]
~~~~~~~~~~~~~~~~~~~~
A round is four calls: two of the form in use and two of the other one. The second call
of each is timed; the first one builds kernels, and moves data to where the form wants
them. So both forms are timed under the same load of the machine. Noise makes a time
longer, never shorter, so the least time of the newest rounds counts.

The first rounds begin once the time that was lost without kernels, as expected, equals
the price of building and trying them. That is the rule of ski rental (Karlin, Manasse,
Rudolph and Sleator, 1988): a short program never builds a kernel that does not pay
within it. From then on a round is due whenever it costs less than one percent of the
time since the last one, so a form that became faster is noticed.

Rejected: the learner of eager ops. It compares times of one candidate now with older
ones of the other. On a machine whose load changed it chose kernels of 3.6 ms in place
of native code of 1.3 ms for the rest of the program, since native code had been timed
while other programs ran. And a choice that is made once, for the same reason.
"""

import math
from collections import deque
from dataclasses import dataclass
from typing import Protocol

FIRST_ROUNDS = 3
KEPT_ROUNDS = 5
FRACTION = 0.01
LEAST_CALLS = 100  # between two rounds

# The other form replaces the one in use if it takes less than this fraction of its
# time: two equal ones should not alternate.
_REPLACES = 0.95

_STALL_US = 100.0  # what the waits of a round cost: orders of magnitude


@dataclass(frozen=True, slots=True)
class Turn:
    """How a call runs. timed: from an idle stream until it is idle again."""

    kernels: bool
    timed: bool = False


class Rounds(Protocol):
    """Decides how the calls of a graph run, and learns how long the timed ones took."""

    def next(self) -> Turn: ...

    def record(self, kernels: bool, us: float) -> None: ...

    def measured_us(self, *, kernels: bool) -> float | None: ...


class PairedRounds:
    """The calls of one graph with inputs of about the same sizes."""

    def __init__(self, native_us: float, kernels_us: float, build_us: float) -> None:
        self.kernels = False  # the form in use
        self._times: dict[bool, deque[float]] = {
            kernels: deque(maxlen=KEPT_ROUNDS) for kernels in (False, True)
        }
        self._turns: list[Turn] = []  # of the rounds that are underway
        self._measuring = False
        lost_us = max(native_us - kernels_us, FRACTION * native_us)
        price_us = build_us + FIRST_ROUNDS * kernels_us
        self._left = math.ceil(price_us / lost_us)  # calls until the next round

    def next(self) -> Turn:
        """How the next call runs."""
        if not self._turns:
            if self._measuring:
                self._settle()
            if self._left > 0:
                self._left -= 1
                return Turn(self.kernels)
            self._begin()
        return self._turns.pop()

    def record(self, kernels: bool, us: float) -> None:
        """Records the time of a timed call."""
        self._times[kernels].append(us)

    def measured_us(self, *, kernels: bool) -> float | None:
        """The least time in the newest rounds; None before the first one."""
        return min(self._times[kernels], default=None)

    def _begin(self) -> None:
        self._measuring = True
        turns = [
            Turn(kernels, timed)
            for kernels in (self.kernels, not self.kernels)
            for timed in (False, True)
        ]
        rounds = 1 if self._times[True] else FIRST_ROUNDS
        self._turns = (turns * rounds)[::-1]

    def _settle(self) -> None:
        self._measuring = False
        now = self.measured_us(kernels=self.kernels)
        other = self.measured_us(kernels=not self.kernels)
        self._left = LEAST_CALLS
        if now is None or other is None:  # calls raised errors
            return
        if other < _REPLACES * now:
            self.kernels = not self.kernels
            now, other = other, now
        extra_us = 2 * max(other - now, 0) + _STALL_US
        self._left = max(LEAST_CALLS, math.ceil(extra_us / (FRACTION * now)))
