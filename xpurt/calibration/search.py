"""Which sizes of a class of ops are measured, and how often. Pure: no op is called."""

import itertools
import math
from dataclasses import dataclass, field

# Every size that is measured has so many rounds, and one that a choice hangs on so
# many.
ROUNDS = 2
MAX_ROUNDS = 4
# Where one tier takes so many times as long as the other, the choice is clear.
CLEAR = 2.0
# How much longer than that of more elements a time may be.
_TOLERANCE = 1.3
# Sizes end where the quicker tier takes longer: what is beyond is proportional.
LONGEST_US = 2_000.0


@dataclass(slots=True)
class Times:
    """Microseconds of one size, an entry per round."""

    native: list[float] = field(default_factory=list)
    kernel: list[float] = field(default_factory=list)

    def best(self) -> tuple[float, float]:
        """What else a machine does makes times longer, never shorter."""
        return min(self.native), min(self.kernel)

    def side(self) -> int:
        """1 or -1 where the kernel, or PyTorch's, is clearly quicker; else 0."""
        native, kernel = self.best()
        return (native > CLEAR * kernel) - (kernel > CLEAR * native)

    def rounds_agree(self) -> bool:
        """Whether the same tier is quicker, whichever rounds are compared."""
        native, kernel = self.native, self.kernel
        return max(native) < min(kernel) or max(kernel) < min(native)


class Search:
    """For where a kernel begins to win, among sizes that grow by 2**`step` from each to
    the next.

    The ends and the middle are measured, and then what lies between, until on both
    sides of each gap the same tier is clearly quicker, or nothing lies between. Two
    rounds show whether times are to be believed.
    """

    def __init__(self, sizes: int, step: int) -> None:
        self._sizes = sizes
        self._step = step
        self._middle = (sizes - 1) // 2
        self._known: dict[int, Times] = {}

    def __contains__(self, place: int) -> bool:
        return place in self._known

    def note(self, place: int, native_us: float, kernel_us: float) -> None:
        """A round of the size at `place`."""
        times = self._known.setdefault(place, Times())
        times.native.append(native_us)
        times.kernel.append(kernel_us)

    def wanted(self) -> list[int]:
        """The places of which the next round is to be taken; none: it is over."""
        if not self._known:
            return sorted({0, self._middle})
        doubtful = self._doubtful()
        again = {
            place
            for place, times in self._known.items()
            if len(times.native) < (MAX_ROUNDS if place in doubtful else ROUNDS)
        }
        return sorted({self._last()} - self._known.keys() | self._between() | again)

    def best(self) -> list[tuple[int, float, float]]:
        """(place, native, kernel), by place, in microseconds.

        A time that is longer than that of more elements was disturbed.
        """
        found: list[tuple[int, float, float]] = []
        native = kernel = math.inf
        for place in sorted(self._known, reverse=True):
            of_native, of_kernel = self._known[place].best()
            native, kernel = min(native, of_native), min(kernel, of_kernel)
            found.append((place, native, kernel))
        return found[::-1]

    def rounds(self) -> list[list[float]]:
        """What was noted, of each size and tier, in microseconds."""
        known = self._known.values()
        return [rounds for times in known for rounds in (times.native, times.kernel)]

    def _last(self) -> int:
        room = LONGEST_US / min(self._known[self._middle].best())
        steps = int(math.log2(max(room, 1))) // self._step
        return max(*self._known, min(self._middle + steps, self._sizes - 1))

    def _between(self) -> set[int]:
        """The middles of gaps on whose sides the tiers' order is not the same."""
        seen = [p for p in sorted(self._known) if len(self._known[p].native) >= ROUNDS]
        return {
            (a + b) // 2
            for a, b in itertools.pairwise(seen)
            if self._known[a].side() * self._known[b].side() != 1
        } - self._known.keys()

    def _doubtful(self) -> set[int]:
        """Where the tiers are close, rounds disagree, or a time was disturbed."""
        return {
            place
            for place, native, kernel in self.best()
            if self._known[place].side() == 0
            or not self._known[place].rounds_agree()
            or _longer(self._known[place].best(), (native, kernel))
        }


def _longer(times: tuple[float, float], than: tuple[float, float]) -> bool:
    return any(a > _TOLERANCE * b for a, b in zip(times, than, strict=True))
