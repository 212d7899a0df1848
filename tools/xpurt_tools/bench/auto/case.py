"""A case of the suite `auto`: its work, and the limit of AUTO's time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xpurt_tools.bench.row import Call

ALONE = ("CPU", "GPU")


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of AUTO's time: `most` times that of the fastest of `against`.

    against: mappings. `most` below 1 requires a gain.
    together: compares with all of them at once, as if each did a part of the work and
        all ended together. 1 / `most` is then the efficiency of EngineCL's authors
        (Nozal, Bosque and Beivide, 2020).
    added_ns: `most` is not a ratio: it is what AUTO may add to each of this many ops,
        in nanoseconds of processor time.
    noise: ratios up to this one are measured of equal programs, too.
    """

    most: float
    against: tuple[str, ...] = ALONE
    together: bool = False
    added_ns: int = 0
    noise: float = 0.0

    def time(self, seconds: Mapping[str, float]) -> float:
        """The time that a limit of 1 stands for, from the times by mapping."""
        times = [seconds[mapping] for mapping in self.against]
        return 1 / sum(1 / each for each in times) if self.together else min(times)

    def value(self, auto: float, seconds: Mapping[str, float]) -> float:
        """What is compared with `most`."""
        other = self.time(seconds)
        if self.added_ns:
            return (auto - other) * 1e9 / self.added_ns
        return auto / other


@dataclass(frozen=True, slots=True)
class AutoCase:
    """One kind of work, and its limit.

    prepare: makes the tensors on xpu, and the call, which submits all of its work.
    auto: the mapping that is measured.
    slow_gpu: the factor by which a delay of each kernel slows down the GPU.
    kernels: in a call, for that delay.
    group: cases whose geometric mean has a limit, too.
    calls: the calls per measurement.
    runs: in processes of their own each; the one with the median value counts.
    """

    name: str
    prepare: Callable[[], Call]
    limit: Limit
    auto: str = "AUTO"
    slow_gpu: float = 1.0
    kernels: int = 1
    group: str = ""
    calls: int = 1
    runs: int = 1
