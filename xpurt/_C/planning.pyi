"""Which device runs an op, and in which form: csrc/python/bind_planning.cpp. At run
time these are names of `xpurt._C`."""

from collections.abc import Sequence
from typing import ClassVar

from numpy.typing import ArrayLike

class TwoForms:
    """Chooses for the calls of one class between two forms: see Note [Two forms] in
    csrc/schedule/planning/two_forms.h. False is the first form, which is in use at the
    start, and True the second one. Not for calls of results that have to repeat: ask
    `learns` first."""

    most_calls: ClassVar[int]  # of the first rounds
    def __init__(self, price_us: float, lost_us: float, ends: bool) -> None:
        """price_us: of trying the second form. lost_us: what a call is expected to lose
        without it; 0: a whole call. `ends`: the first rounds decide for good."""

    def next(self) -> tuple[bool, bool]:
        """The form of the next call, and whether `record` wants its time, from an idle
        device until it is idle again."""

    def record(self, second: bool, us: float) -> None: ...
    def refuse(self) -> None:
        """The second form cannot run these calls."""

    @property
    def in_use(self) -> bool: ...
    @property
    def decided(self) -> bool | None:
        """The form in use once it stays; None before."""

    def least_us(self, second: bool) -> float:
        """The least time of the newest rounds; 0: not measured."""

    @property
    def lost_us(self) -> float:
        """As given, or as measured; 0: not known yet."""

class OnlinePolicy:
    """Earliest finish, never far behind the best device alone; see
    csrc/schedule/planning/online_policy.h. Arrays hold one number per device: the time when its
    queue is empty, the time when the op's inputs are there, the op's cost (infinite: it
    cannot run there), the cost of moving its results to another device. Raises
    ValueError."""

    def __init__(self, devices: int) -> None: ...
    def remember(self, work: Sequence[float]) -> None:
        """Adds the time that each device alone takes for work seen before."""

    def choose(
        self,
        free_at: ArrayLike,
        ready_at: ArrayLike,
        cost: ArrayLike,
        leave: ArrayLike,
        now: float = 0.0,
        is_idle: bool = False,
        streams: ArrayLike | None = None,
    ) -> int:
        """`is_idle`: all submitted work is done at `now`. `streams`: of the time until the
        inputs are there, that of copies that each such op makes anew."""

    @property
    def best_alone(self) -> int: ...
    @property
    def alone(self) -> list[float]:
        """The time at which each device alone would have finished everything so far."""

    def choice_ns(self, calls: int) -> float: ...

class Parallelism:
    """The average parallelism of a program's long ops; see
    csrc/schedule/planning/parallelism.h. A read is a value's number and its version."""

    def __init__(self) -> None: ...
    def add(
        self, cost_us: float, reads: Sequence[tuple[int, int]], blocks: bool = False
    ) -> float:
        """Adds an op. Returns when its results are there, on the longest path.
        `blocks`: it blocks the host until then."""

    def add_written(self, value: int, version: int, end_us: float) -> None: ...
    def add_result(self, value: int, version: int, end_us: float) -> None:
        """The same of a result, which may have been recorded as written."""

    def join(self) -> None:
        """The host has waited for what came before."""

    @property
    def average(self) -> float: ...

class Overlap:
    """What home's queue is worth beside other devices; see
    csrc/schedule/planning/parallelism.h. `others`: ops that all other devices compute in
    a microsecond."""

    def __init__(self, kernel_us: float, native_us: float, others: float) -> None: ...
    def us(self, parallelism: float) -> float:
        """What an op takes of the program's time on home's queue."""

    def prefers_queue(self, parallelism: float, is_in_use: bool) -> bool: ...
    def always_blocks(self) -> bool: ...

class CopyRegret:
    """When to copy operands that stay; see csrc/schedule/planning/copy_regret.h."""

    def __init__(self) -> None: ...
    def add(self, gain_us: float, copy_us: float, calls: float = 1.0) -> bool: ...
    def pay_off(self) -> None: ...

class StorageUses:
    """When a storage was used, in numbers of the program's ops; see
    csrc/memory/replica/copy_value.h."""

    def __init__(self) -> None: ...
    def add(self, now: int, reads: bool = True, writes: bool = False) -> None: ...
    def gap(self, now: int) -> float: ...
    def next(self, now: int) -> float: ...

class CopyValue:
    """What a copy on a device gains; the least one goes first. `saved`: what ops save by
    it, over the time of copying it. `only`: it is the only valid copy."""

    def __init__(
        self, saved: float, uses: StorageUses, now: int, only: bool = False
    ) -> None: ...
    @property
    def value(self) -> float: ...
    def is_clearly_below(self, other: CopyValue) -> bool: ...
    def __lt__(self, other: CopyValue) -> bool: ...

class Baseline:
    """Whether a program runs faster with all devices than on the best one alone; see
    csrc/schedule/planning/baseline.h."""

    def __init__(self) -> None: ...
    def add(self, kind: int, alone_us: float, elsewhere: bool, now: float) -> bool: ...
    @property
    def is_alone(self) -> bool: ...
    @property
    def ratio(self) -> float: ...

class LostDivision:
    """When to divide an op again though its shards were slow; see
    csrc/schedule/planning/lost_division.h."""

    def __init__(self) -> None: ...
    def is_due(self, us: float, divided_us: float, calls: float = 1.0) -> bool: ...
    def pay_off(self) -> None: ...

def divide_again(
    launch: Sequence[float],
    of_shards: Sequence[float],
    of_whole_calls: Sequence[float],
    us: float,
    lost: LostDivision,
) -> list[float]:
    """The proportions of a division to try though the times of shards speak against it;
    empty: none is due."""

def whole_us_of(shard_us: float, setup_us: float, proportion: float) -> float: ...

class Boundary:
    """Where the ops of a chain are divided; see csrc/schedule/planning/boundary.h."""

    def __init__(self) -> None: ...

def units_for(proportions: Sequence[float], units: int) -> list[int]:
    """The whole units of each device, such that the last one is done as early as
    possible. The proportions add up to 1."""

def divide_call(
    queue: Sequence[float],
    launch: Sequence[float],
    copies: Sequence[float],
    whole: Sequence[float],
    alone_us: float,
    in_shards: bool,
    regret: CopyRegret,
    boundary: Boundary,
    sums: Sequence[float] = (),
) -> list[float]:
    """The proportions in which the scheduler divides an op; empty: it does not. Times by
    device: until its queue is free, of a launch, of copies of operands that every shard
    reads, and of the whole op (infinite: it cannot run there). `alone_us`: when the best
    device alone is done. `in_shards`: a divided op has left the operands on the devices.
    `sums`: of adding a device's partial result; `launch` then includes its copy to home.
    Raises ValueError."""
