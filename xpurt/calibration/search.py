"""Which sizes of a cost class are measured, and how often. Pure: it calls no op."""

import itertools
import math
from dataclasses import dataclass, field

# The number of rounds of every size that is measured, and the largest number, for sizes
# on which the choice depends.
ROUNDS = 2
MAX_ROUNDS = 4
# If one tier takes this many times as long as the other, the choice is clear.
CLEAR = 2.0
# The largest ratio between a time and that of more elements.
_TOLERANCE = 1.3
# No size is measured at which the faster tier takes longer: times are proportional
# there.
LONGEST_US = 2_000.0


@dataclass(slots=True)
class Times:
    """The times of one size in microseconds, one entry per round."""

    native: list[float] = field(default_factory=list)
    kernel: list[float] = field(default_factory=list)

    def best(self) -> tuple[float, float]:
        """The shortest times: other load makes times longer, never shorter."""
        return min(self.native), min(self.kernel)

    def side(self) -> int:
        """1 if the kernel is clearly faster, -1 if PyTorch's is, else 0."""
        native, kernel = self.best()
        return (native > CLEAR * kernel) - (kernel > CLEAR * native)

    def rounds_agree(self) -> bool:
        """True if the same tier is faster in any two rounds."""
        native, kernel = self.native, self.kernel
        return max(native) < min(kernel) or max(kernel) < min(native)


class Search:
    """A search for the size from which on a kernel is faster. Sizes grow by a factor of
    2**`step`.

    The ends and the middle are measured first. Then the middles of gaps are measured,
    until on both sides of each gap the same tier is clearly faster, or the gap has no
    size. A second round shows whether times are reliable.
    """

    def __init__(self, sizes: int, step: int) -> None:
        self._sizes = sizes
        self._step = step
        self._middle = (sizes - 1) // 2
        self._known: dict[int, Times] = {}

    def __contains__(self, place: int) -> bool:
        return place in self._known

    def note(self, place: int, native_us: float, kernel_us: float) -> None:
        """Records a round of the size at `place`."""
        times = self._known.setdefault(place, Times())
        times.native.append(native_us)
        times.kernel.append(kernel_us)

    def wanted(self) -> list[int]:
        """The positions that need another round; none if the search is complete."""
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
        """(place, native, kernel), sorted by place, in microseconds.

        A time longer than that of more elements was disturbed, and is replaced by it.
        """
        found: list[tuple[int, float, float]] = []
        native = kernel = math.inf
        for place in sorted(self._known, reverse=True):
            of_native, of_kernel = self._known[place].best()
            native, kernel = min(native, of_native), min(kernel, of_kernel)
            found.append((place, native, kernel))
        return found[::-1]

    def rounds(self) -> list[list[float]]:
        """The recorded times of each size and tier, in microseconds."""
        known = self._known.values()
        return [rounds for times in known for rounds in (times.native, times.kernel)]

    def _last(self) -> int:
        room = LONGEST_US / min(self._known[self._middle].best())
        steps = int(math.log2(max(room, 1))) // self._step
        return max(*self._known, min(self._middle + steps, self._sizes - 1))

    def _between(self) -> set[int]:
        """The middles of gaps between whose ends the faster tier may change."""
        seen = [p for p in sorted(self._known) if len(self._known[p].native) >= ROUNDS]
        return {
            (a + b) // 2
            for a, b in itertools.pairwise(seen)
            if self._known[a].side() * self._known[b].side() != 1
        } - self._known.keys()

    def _doubtful(self) -> set[int]:
        """The sizes at which tiers are close, rounds disagree, or a time was
        disturbed."""
        return {
            place
            for place, native, kernel in self.best()
            if self._known[place].side() == 0
            or not self._known[place].rounds_agree()
            or _longer(self._known[place].best(), (native, kernel))
        }


def _longer(times: tuple[float, float], than: tuple[float, float]) -> bool:
    return any(a > _TOLERANCE * b for a, b in zip(times, than, strict=True))
