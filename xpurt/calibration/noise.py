"""How busy the machine is during a calibration, and whether the times are kept.

Note [Noise]
~~~~~~~~~~~~
The shortest of several times hides disturbances of a few of them only. If other
programs need the processors all the time, a kernel on all threads always waits for one
of its threads. Three numbers detect this. Between the measurements every thread does
the same fixed work. `lost` is the share of its wall time in which it was not on a
processor, because other programs were. `slowed` is its median processor time divided by
the shortest one. It grows if another program runs on the same core, if the machine is
throttled, or if a virtual machine gets less than it was assigned. `unlike` is the ratio
of the two shortest times of one and the same call, the median over all calls.
"""

import hashlib
import math
import statistics
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Final, NamedTuple

import torch

MOST_LOST: Final = 0.15
MOST_SLOWED: Final = 1.5
MOST_UNLIKE: Final = 1.5
# The duration of a thread's work: longer than most interruptions, shorter than a
# scheduler's time slice.
_WORK_S = 2e-3
# So large that hashlib releases the GIL.
_HASHED = bytes(1 << 16)


class Spent(NamedTuple):
    """The seconds that a thread's work took."""

    wall: float
    processor: float


# The times of all threads, which do the work at the same time.
Reference = Callable[[], list[Spent]]


@dataclass(frozen=True, slots=True)
class Noise:
    """See Note [Noise]. lost: 0 to 1. slowed, unlike: 1 or more."""

    lost: float
    slowed: float
    unlike: float

    def faults(self) -> list[str]:
        """One phrase for each number that is too large; none on a quiet machine."""
        found = []
        if self.lost > MOST_LOST:
            found.append(
                f"other programs took {self.lost:.0%} of the processors' time, and "
                f"{MOST_LOST:.0%} is the most"
            )
        if self.slowed > MOST_SLOWED:
            found.append(
                f"the same work took {self.slowed:.1f} times as long as at best, and "
                f"{MOST_SLOWED:.1f} is the most"
            )
        if self.unlike > MOST_UNLIKE:
            found.append(
                f"repeated times were {self.unlike:.1f} times as long as the shortest, "
                f"and {MOST_UNLIKE:.1f} is the most"
            )
        return found

    def __str__(self) -> str:
        return (
            f"other programs took {self.lost:.0%} of the processors' time, equal work "
            f"took {self.slowed:.2f} times as long as at best, repeated times "
            f"{self.unlike:.2f} times"
        )


class Watch:
    """Measures the load of the machine between measurements; a context manager.

    reference: replaces the work of the threads, in tests.
    """

    def __init__(self, reference: Reference | None = None) -> None:
        threads = torch.get_num_threads()
        self._pool = ThreadPoolExecutor(threads)
        self._rounds = 1
        self._threads = threads
        self._reference = reference or self._work
        self._spent: list[Spent] = []
        self._unlike: list[float] = []
        if reference is None:
            one = min(_hashing(8).processor for _ in range(5)) / 8
            self._rounds = max(1, round(_WORK_S / max(one, 1e-9)))

    def __enter__(self) -> "Watch":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pool.shutdown()

    def look(self) -> None:
        self._spent += self._reference()

    def compare(self, times_us: Iterable[float]) -> None:
        """Records repeated times of one call."""
        first, second, *_ = [*sorted(times_us), math.nan, math.nan]
        if second >= first > 0:  # false if there is only one time
            self._unlike.append(second / first)

    def noise(self) -> Noise:
        if not self._spent:
            return Noise(0.0, 1.0, statistics.median(self._unlike or [1.0]))
        wall = sum(each.wall for each in self._spent)
        on_processor = [each.processor for each in self._spent]
        best = min(on_processor)
        return Noise(
            lost=max(0.0, 1 - sum(on_processor) / max(wall, 1e-9)),
            slowed=statistics.median(on_processor) / max(best, 1e-9),
            unlike=statistics.median(self._unlike or [1.0]),
        )

    def _work(self) -> list[Spent]:
        rounds = [self._rounds] * self._threads
        return list(self._pool.map(_hashing, rounds))


def _hashing(rounds: int) -> Spent:
    wall, processor = time.perf_counter(), time.thread_time()
    for _ in range(rounds):
        hashlib.sha256(_HASHED).digest()
    return Spent(time.perf_counter() - wall, time.thread_time() - processor)
