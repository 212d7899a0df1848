"""Times of several forms of the same work, interleaved, so that other load on the
machine affects all of them alike."""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat

from xpurt_tools.bench import calibration_loop
from xpurt_tools.bench.row import Call

Clock = Callable[[], float]

# The shortest time of a batch of calls between two readings of the clock.
BATCH_S = 4e-3
LARGEST_BATCH = 5000
# The threads of one form go on spinning for a while after its last call (libgomp's for
# some milliseconds). They would take a core from the next form, whose own threads sleep
# meanwhile. So each batch is preceded by a rest, and by calls that are not timed and
# wake the threads. Without these an add of 1M floats on xpu took twice as long
# alternating with the CPU as alone; with them it took the same time.
REST_S = 4e-3
LEAD_IN_S = 3e-3
SHORT_CALL_S = 20e-3  # longer calls are not affected by the first milliseconds
# A comparison with disturbed rounds may take this many times as long.
PATIENCE = 3


@dataclass(frozen=True, slots=True)
class Budget:
    """The length of a comparison: until `seconds` are spent, but at least `fewest` and
    at most `most` rounds; and never longer than four times `seconds`, or twelve times if
    other programs disturb it. Before, xpu is called for `learning` seconds: xpurt learns
    which tier is faster, as in a program that runs for a while."""

    seconds: float
    fewest: int
    most: int
    learning: float = 0.0


@dataclass(frozen=True, slots=True)
class Side:
    """One form of the work. `finish` returns when all submitted work is done."""

    name: str
    call: Call
    finish: Callable[[], object] = lambda: None


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds per call of one side, one number per round; processor: of all threads of
    the process. load: of the machine, see `CalibrationLoop`; the median of the rounds."""

    seconds: tuple[float, ...]
    processor: tuple[float, ...] = ()
    load: float = 1.0

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass(frozen=True, slots=True)
class Ratio:
    """The time of one side divided by that of the other: of their typical times, and
    the quartiles of the ratios of the single rounds."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _Round:
    """The load before it, and the seconds and processor time of a call of each side."""

    load: float
    times: tuple[tuple[float, float], ...]

    @property
    def quiet(self) -> bool:
        return self.load <= calibration_loop.MOST


def interleaved(
    sides: Sequence[Side],
    budget: Budget,
    clock: Clock = time.perf_counter,
    load: Callable[[], float] = lambda: 1.0,
) -> list[Times]:
    """The sides' times, in their order: A B A B ..., after calls that are not timed.

    load: of the machine. Rounds that other programs disturb are taken again while there
    is time. If at last no two were quiet, the times are those of all rounds.

    Garbage is collected only at the end.
    """
    with _no_collection():
        batches = [_batch_of(side, clock) for side in sides]
        rounds: list[_Round] = []
        began = clock()
        while not _enough(rounds, clock() - began, budget):
            found = _Round(
                load(),
                tuple(
                    _times_of(side, *batch, clock)
                    for side, batch in zip(sides, batches, strict=True)
                ),
            )
            rounds.append(found)
    quiet = [each for each in rounds if each.quiet]
    kept = quiet if len(quiet) >= min(2, len(rounds)) else rounds
    typical = statistics.median(each.load for each in kept)
    return [
        Times(
            tuple(each.times[place][0] for each in kept),
            tuple(each.times[place][1] for each in kept),
            typical,
        )
        for place in range(len(sides))
    ]


def _enough(rounds: Sequence[_Round], spent: float, budget: Budget) -> bool:
    quiet = sum(each.quiet for each in rounds)
    if quiet >= budget.most or (quiet >= budget.fewest and spent >= budget.seconds):
        return True
    if not rounds:
        return False
    patience = 1 if quiet == len(rounds) else PATIENCE
    return spent >= 4 * budget.seconds * patience


def go_on(side: Side, seconds: float, clock: Clock = time.perf_counter) -> None:
    """Repeats calls that are not timed, for this many seconds."""
    began = clock()
    while clock() - began < seconds:
        side.call()
        side.finish()


def ratio_of(times: Times, other: Times) -> Ratio:
    """The ratio of `times` to `other`, whose rounds were interleaved."""
    return _ratio(times.seconds, other.seconds, statistics.median)


def processor_ratio_of(times: Times, other: Times) -> Ratio:
    """The ratio of the processor times, of the least ones: other programs only add to
    them."""
    return _ratio(times.processor, other.processor, min)


def _ratio(
    times: Sequence[float],
    others: Sequence[float],
    typical: Callable[[Sequence[float]], float],
) -> Ratio:
    # A clock of processor time may stand still for a short call.
    rounds = [a / max(b, 1e-9) for a, b in zip(times, others, strict=True)]
    if len(rounds) < 2:
        low = high = rounds[0]
    else:
        low, _, high = statistics.quantiles(rounds, n=4, method="inclusive")
    return Ratio(typical(times) / max(typical(others), 1e-9), low, high)


def _batch_of(side: Side, clock: Clock) -> tuple[int, bool]:
    """Calls per batch, and whether calls that are not timed precede it.

    The first call builds kernels and fills memory caches; its time is not used.
    """
    _seconds(side, 1, clock)
    one_call, _ = _seconds(side, 1, clock)
    if one_call < BATCH_S:
        _seconds(side, 3, clock)
        one_call, _ = _seconds(side, 10, clock)
    calls = min(LARGEST_BATCH, max(1, round(BATCH_S / max(one_call, 1e-9))))
    return calls, one_call < SHORT_CALL_S


def _times_of(
    side: Side, calls: int, lead_in: bool, clock: Clock
) -> tuple[float, float]:
    if lead_in:
        _lead_in(side, clock)
    return _seconds(side, calls, clock)


def _lead_in(side: Side, clock: Clock) -> None:
    time.sleep(REST_S)
    go_on(side, LEAD_IN_S, clock)


def _seconds(side: Side, calls: int, clock: Clock) -> tuple[float, float]:
    """The time per call, and the processor time."""
    call = side.call
    processor = time.process_time()
    began = clock()
    for _ in repeat(None, calls):
        call()
    side.finish()
    ended = clock()
    return (ended - began) / calls, (time.process_time() - processor) / calls


@contextmanager
def _no_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
