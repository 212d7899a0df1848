"""Chains of ops that do not depend on each other, where the best kernel at home blocks
the host: the code of the run time decides which kernel and which device runs each op."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xpurt import _C
from xpurt.errors import PlanningError

# Rounds until the parallelism is known; the time is the mean of those that follow.
LEARNING, MEASURED = 8, 8


@dataclass(frozen=True, slots=True)
class IndependentChains:
    """The outcome of chains in a loop. Times in microseconds per round.

    alone: per device, the time of all chains on it alone.
    together: the time if the run time's code chooses.
    on_queue: the part of home's ops that its queue ran, of the last round.
    """

    alone: tuple[float, ...]
    together: float
    on_queue: float

    @property
    def speedup(self) -> float:
        """Against the best device alone."""
        return min(self.alone) / self.together


def run_chains(
    chains: int,
    steps: int,
    native_us: float,
    kernel_us: float,
    others_us: Sequence[float],
    *,
    copy_us: float = 0.0,
) -> IndependentChains:
    """Runs chains that are submitted alternately; the host waits after each round.

    chains: their number; each has `steps` ops, which read the result of the one before.
    native_us: of an op by PyTorch's kernel at home, which blocks the host.
    kernel_us: of an op by the kernel on home's queue.
    others_us: of an op on each of the other devices.
    copy_us: of a result, between two devices.

    Raises PlanningError without a chain, a step or another device, and for times that
    are not positive.
    """
    times = [native_us, kernel_us, *others_us]
    if chains < 1 or steps < 1 or not others_us:
        raise PlanningError("run_chains wants a chain, a step and another device")
    if not all(us > 0 and math.isfinite(us) for us in times) or copy_us < 0:
        raise PlanningError(f"times of ops are positive; found {times}")
    loop = _Loop(chains, steps, native_us, [kernel_us, *others_us], copy_us)
    took = [loop.round() for _ in range(LEARNING + MEASURED)]
    ops = chains * steps
    return IndependentChains(
        tuple(ops * us for us in (min(native_us, kernel_us), *others_us)),
        sum(took[LEARNING:]) / MEASURED,
        loop.queued / max(loop.at_home, 1),
    )


@dataclass
class _Value:
    number: int
    ready_us: dict[int, float]  # by device that has a copy


class _Loop:
    def __init__(
        self,
        chains: int,
        steps: int,
        native_us: float,
        queue_us: list[float],
        copy_us: float,
    ) -> None:
        self.steps, self.native_us, self.copy_us = steps, native_us, copy_us
        self.queue_us = queue_us  # home first
        self.parallelism = _C.Parallelism()
        self.policy = _C.OnlinePolicy(len(queue_us))
        self.now = 0.0
        self.free = [0.0] * len(queue_us)
        self.in_use = False  # the kernel on home's queue
        self.starts = [_Value(number, {0: 0.0}) for number in range(1, chains + 1)]
        self.values = chains
        self.queued = self.at_home = 0

    def round(self) -> float:
        """The time of a round."""
        began = self.now
        self.queued = self.at_home = 0
        now = self.starts
        for _ in range(self.steps):
            now = [self._op(each) for each in now]
        self.now = max(self.now, *self.free)
        self.parallelism.join()
        return self.now - began

    def _op(self, read: _Value) -> _Value:
        devices = range(len(self.free))
        moves = [self.copy_us * (d not in read.ready_us) for d in devices]
        others = sum(
            1 / (us + moved)
            for us, moved in zip(self.queue_us[1:], moves[1:], strict=True)
        )
        overlap = _C.Overlap(self.queue_us[0], self.native_us, others)
        # Costs of home's best kernel, as at run time.
        cost = min(self.native_us, *self.queue_us)
        end = self.parallelism.add(cost, [(read.number, 0)], overlap.always_blocks())
        self.in_use = self.queue_us[0] < self.native_us or overlap.prefers_queue(
            self.parallelism.average, self.in_use
        )
        costs = [self.queue_us[0] if self.in_use else self.native_us]
        costs += self.queue_us[1:]
        free = [max(each, self.now) for each in self.free]
        written = max(self.now, min(read.ready_us.values()))
        ready = [
            max(self.now, read.ready_us[d])
            if d in read.ready_us
            else written + moves[d]
            for d in devices
        ]
        device = self.policy.choose(
            free,
            ready,
            costs,
            [self.copy_us * (d != self.policy.best_alone) for d in devices],
            self.now,
            all(each <= self.now for each in self.free),
        )
        ends = max(free[device], ready[device]) + costs[device]
        self.at_home += device == 0
        if device == 0 and not self.in_use:
            self.now = ends
        else:
            self.queued += device == 0
            self.free[device] = ends
        self.values += 1
        self.parallelism.add_result(self.values, 0, end)
        read.ready_us.setdefault(device, ready[device])
        return _Value(self.values, {device: ends})
