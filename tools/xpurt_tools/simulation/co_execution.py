"""Ops that are divided among simulated devices, by the code that divides them at run
time."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from xpurt import _C
from xpurt.errors import PlanningError
from xpurt_tools.simulation.divided_ops import DividedOp
from xpurt_tools.simulation.machine import SimulatedDevice

# Rounds until the speeds are learned; the makespan is the mean of those that follow.
LEARNING, MEASURED = 64, 16


@dataclass(frozen=True, slots=True)
class CoExecution:
    """The outcome of a chain of ops in a loop. Times in microseconds per round.

    alone: per device, the time of the chain on it alone.
    together: the time of the chain if its ops are divided where that is predicted to
        pay.
    proportions: of the last round, per op and device; empty for an op that one device
        computed.
    moved_bytes: between devices, per round.
    """

    alone: tuple[float, ...]
    together: float
    proportions: tuple[tuple[float, ...], ...] = field(repr=False)
    moved_bytes: float

    @property
    def ideal(self) -> float:
        """The time if the devices' speeds added up."""
        return 1 / sum(1 / each for each in self.alone)

    @property
    def efficiency(self) -> float:
        """The ideal time divided by the time; 1 is perfect."""
        return self.ideal / self.together


def co_execute(
    ops: DividedOp | Sequence[DividedOp],
    devices: Sequence[SimulatedDevice],
    *,
    noise: float = 0.03,
    prediction_error: float = 1.5,
    shared_boundary: bool = True,
    seed: int = 0,
) -> CoExecution:
    """Runs a chain of ops in a loop; the host waits after each round.

    ops: each reads the result of the previous one, by rows; the first one reads that of
        the last.
    devices: the first one is home. Those of one `memory` copy nothing, and share its
        bandwidth: at most that of the fastest of them.
    noise: the standard deviation of the logarithm of each time.
    prediction_error: the largest factor by which costs are predicted wrongly before the
        first timed sample; drawn for each op and device.
    shared_boundary: whether the ops of a chain are divided at one boundary. If not,
        each is divided as would be best by itself.
    seed: of the noise and of the errors.

    Raises PlanningError without ops, or with fewer than two devices.
    """
    chain = [ops] if isinstance(ops, DividedOp) else list(ops)
    if not chain or len(devices) < 2:
        raise PlanningError("co_execute wants an op at least, and two devices")
    run = _Run(
        chain,
        devices,
        noise,
        prediction_error,
        shared_boundary,
        np.random.default_rng(seed),
    )
    rounds = [run.round() for _ in range(LEARNING + MEASURED)][LEARNING:]
    alone = tuple(sum(_work_us(op, one, 1.0) for op in chain) for one in devices)
    return CoExecution(
        alone,
        sum(took for took, _ in rounds) / MEASURED,
        tuple(map(tuple, run.last)),
        sum(moved for _, moved in rounds) / MEASURED,
    )


def _work_us(
    op: DividedOp, device: SimulatedDevice, proportion: float, bandwidth: float = 1.0
) -> float:
    """The time of a shard. bandwidth: the part of the memory's that the device gets."""
    compute = op.flops * proportion / device.flops_per_us
    memory = op.bytes_of(proportion) / (device.bytes_per_us * bandwidth)
    return device.launch_us + max(compute, memory) / device.speed


class _Run:
    """The state of the loop: where results are, and what the scheduler has learned."""

    def __init__(
        self,
        chain: list[DividedOp],
        devices: Sequence[SimulatedDevice],
        noise: float,
        prediction_error: float,
        shared_boundary: bool,
        draw: np.random.Generator,
    ) -> None:
        self.chain, self.devices, self.noise, self.draw = chain, devices, noise, draw
        self.shared_boundary = shared_boundary
        span = math.log(prediction_error)
        self.expected = [
            [
                _work_us(op, one, 1.0) * math.exp(draw.uniform(-span, span))
                for one in devices
            ]
            for op in chain
        ]
        made = _C.testing.LearnedCost
        self.of_shards = [[made() for _ in devices] for _ in chain]
        self.of_whole = [[made() for _ in devices] for _ in chain]
        self.regrets = [_C.CopyRegret() for _ in chain]
        self.boundaries: dict[int, _C.Boundary] = {}
        # The share of each device of the last result: from where to where, of 1.
        self.held = [(0.0, 1.0)] + [(1.0, 1.0)] * (len(devices) - 1)
        self.has_weights = [[True] + [False] * (len(devices) - 1) for _ in chain]
        self.last: list[list[float]] = [[] for _ in chain]

    def round(self) -> tuple[float, float]:
        """The time of all ops, and the bytes moved."""
        free = [0.0] * len(self.devices)
        booked = list(free)  # as predicted
        moved = 0.0
        for number, op in enumerate(self.chain):
            proportions = self._divided(number, op, booked)
            whole = [1.0 * (p == max(proportions)) for p in proportions]
            divides = sum(p > 0 for p in proportions) > 1
            self.last[number] = proportions if divides else []
            moved += self._compute(number, op, proportions if divides else whole, free)
        return max(free), moved

    def _divided(self, number: int, op: DividedOp, booked: list[float]) -> list[float]:
        """The proportions, by the run time's code. Adds the op to the predicted ends."""
        numbers = range(len(self.devices))
        launch = [
            each.launch_us + self._link_us(d, op.summed_bytes) * (d > 0)
            for d, each in enumerate(self.devices)
        ]
        sums = [self._sum_us(op)] * len(self.devices)
        copies = [self._copies_us(number, op, d) for d in numbers]
        whole = [self._whole_us(number, d) for d in numbers]
        learned = [cost.estimate(1.0) for cost in self.of_whole[number]]
        alone = [
            booked[d]
            + self._gather_us(op, d)
            + copies[d]
            + self.expected[number][d] * learned[d]
            for d in numbers
        ]
        boundary = self.boundaries.setdefault(
            op.rows if self.shared_boundary else -number, _C.Boundary()
        )
        proportions = _C.divide_call(
            booked,
            launch,
            copies,
            whole,
            min(alone),
            self._is_in_shards(),
            self.regrets[number],
            boundary,
            sums,
        )
        if not proportions:
            best = int(np.argmin(alone))
            booked[best] = alone[best]
            return [1.0 * (d == best) for d in numbers]
        for d, proportion in enumerate(proportions):
            if proportion > 0:
                booked[d] += launch[d] + copies[d] + proportion * whole[d]
        taking_part = sum(proportion > 0 for proportion in proportions)
        if op.summed_bytes:
            booked[0] = max(booked) + (taking_part - 1) * sums[0]
        return proportions

    def _is_in_shards(self) -> bool:
        return 0.0 < self.held[0][1] - self.held[0][0] < 1.0

    def _whole_us(self, number: int, d: int) -> float:
        """The whole op on a device without the launch, as predicted."""
        factor = self.of_shards[number][d].estimate(
            self.of_whole[number][d].estimate(1.0)
        )
        us = self.expected[number][d] * factor
        return max(us - self.devices[d].launch_us, us / 10)

    def _copies_us(self, number: int, op: DividedOp, d: int) -> float:
        missing = self._misses_whole(number, op, d)
        return self._link_us(d, op.whole_bytes) if missing else 0.0

    def _misses_whole(self, number: int, op: DividedOp, d: int) -> bool:
        is_there = self.has_weights[number][d] and not op.fresh_whole
        return bool(op.whole_bytes) and d != 0 and not is_there

    def _gather_us(self, op: DividedOp, d: int) -> float:
        """The copies of the operand for a whole call on one device."""
        missing = 1.0 - (self.held[d][1] - self.held[d][0])
        return self._link_us(d, missing * op.read_bytes)

    def _compute(
        self, number: int, op: DividedOp, proportions: list[float], free: list[float]
    ) -> float:
        """Runs the shards. Changes when devices are free; the bytes moved."""
        moved = 0.0
        units = _C.units_for(proportions, op.rows)
        edges = [0.0, *(end / op.rows for end in itertools.accumulate(units))]
        shards = list(itertools.pairwise(edges))
        busy = [d for d, (low, high) in enumerate(shards) if high > low]
        for d in busy:
            device = self.devices[d]
            low, high = shards[d]
            have = max(0.0, min(high, self.held[d][1]) - max(low, self.held[d][0]))
            copied = (high - low - have) * op.read_bytes
            if self._misses_whole(number, op, d):
                copied += op.whole_bytes
                self.has_weights[number][d] = True
            if self._shares_memory(d):
                copied = 0.0
            moved += copied
            proportion = high - low
            noise = math.exp(self.draw.normal(0.0, self.noise)) if self.noise else 1.0
            work = _work_us(op, device, proportion, self._bandwidth(d, busy)) * noise
            free[d] += self._link_us(d, copied) + work
            learned = self.of_shards if len(busy) > 1 else self.of_whole
            learned[number][d].record(work / proportion / self.expected[number][d])
        self.held = shards
        return moved + self._add_up(op, busy, free)

    def _add_up(self, op: DividedOp, busy: list[int], free: list[float]) -> float:
        """The partial sums of the shards are added at home. The bytes moved."""
        if not op.summed_bytes or len(busy) < 2:
            return 0.0
        moved = 0.0
        for d in busy:
            free[0] = max(
                free[0], free[d] + self._link_us(d, op.summed_bytes) * (d > 0)
            )
            moved += op.summed_bytes * (d > 0 and not self._shares_memory(d))
        free[0] += (len(busy) - 1) * self._sum_us(op)
        return moved

    def _sum_us(self, op: DividedOp) -> float:
        """The time in which home adds a partial sum."""
        home = self.devices[0]
        if not op.summed_bytes:
            return 0.0
        return home.launch_us + 3 * op.summed_bytes / home.bytes_per_us / home.speed

    def _link_us(self, d: int, size_bytes: float) -> float:
        """A copy between home and a device; to home, from the other device."""
        other = d or 1
        if size_bytes <= 0 or self._shares_memory(other):
            return 0.0
        home, far = self.devices[0], self.devices[other]
        rate = min(home.link_bytes_per_us, far.link_bytes_per_us)
        return home.link_us + far.link_us + size_bytes / rate

    def _shares_memory(self, d: int) -> bool:
        memory = self.devices[d].memory
        return bool(memory) and memory == self.devices[0].memory

    def _bandwidth(self, d: int, busy: list[int]) -> float:
        """The part of its own bandwidth that a device gets beside the others."""
        memory = self.devices[d].memory
        beside = [each for each in map(self.devices.__getitem__, busy) if memory]
        beside = [each for each in beside if each.memory == memory]
        wanted = sum(each.bytes_per_us for each in beside)
        limit = min((each.shared_bytes_per_us for each in beside), default=math.inf)
        return min(1.0, limit / wanted) if wanted else 1.0
