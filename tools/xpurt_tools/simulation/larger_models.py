"""A model whose weights do not fit into a device's memory, in a loop: the code of the run
time decides which weights stay there, which are copied for each use, and which ops run at
home."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from xpurt import _C
from xpurt.errors import PlanningError
from xpurt_tools.simulation.machine import SimulatedDevice

POLICIES = ("auto", "streaming", "first layers", "home")


@dataclass(frozen=True, slots=True)
class WeightOp:
    """An op that reads a weight and the result of the op before.

    weight: its number; ops with the same number read the same one.
    """

    weight: int
    weight_bytes: float
    flops: float
    result_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class LargerModel:
    """The outcome per round, as the mean of the last half of the rounds.

    us: microseconds.
    moved_bytes: weights that were copied to the device.
    at_home: the part of the ops that ran at home.
    """

    us: float
    moved_bytes: float
    at_home: float


def run_larger_model(
    rounds: Sequence[Sequence[WeightOp]],
    home: SimulatedDevice,
    device: SimulatedDevice,
    policy: str = "auto",
) -> LargerModel:
    """Runs rounds of a loop, such as the tokens that a model writes. The host waits after
    each.

    policy: "auto": the eager scheduler's decisions. "streaming": all ops on the device,
        whose copies are evicted as under "auto". "first layers": all ops on the device,
        where the weights stay that come first, and the others are copied for each use into
        a room for the largest one, as accelerate's `device_map="auto"` does. "home": all
        ops at home.

    Raises PlanningError for an unknown policy, for fewer than two rounds, and for a weight
    that is larger than the device's memory.
    """
    if policy not in POLICIES:
        raise PlanningError(
            f"policy {policy!r} is unknown; there are {', '.join(POLICIES)}"
        )
    if len(rounds) < 2 or not all(rounds):
        raise PlanningError("run_larger_model wants two rounds of ops, and more")
    largest = max(op.weight_bytes for ops in rounds for op in ops)
    if largest > device.memory_bytes:
        raise PlanningError(
            f"a weight of {largest:,.0f} bytes has no room on the device, which has "
            f"{device.memory_bytes:,.0f}"
        )
    loop = _Loop(home, device, policy, largest if policy == "first layers" else 0.0)
    half = len(rounds) // 2
    for ops in rounds[:half]:
        loop.round(ops)
    began, moved, at_home = loop.now, loop.moved_bytes, loop.at_home
    for ops in rounds[half:]:
        loop.round(ops)
    measured = rounds[half:]
    return LargerModel(
        (loop.now - began) / len(measured),
        (loop.moved_bytes - moved) / len(measured),
        (loop.at_home - at_home) / sum(map(len, measured)),
    )


@dataclass
class _Weight:
    size_bytes: float
    uses: _C.StorageUses = field(default_factory=_C.StorageUses)
    saved: float = 1.0


def _us(op: WeightOp, device: SimulatedDevice) -> float:
    size = op.weight_bytes + op.result_bytes
    work = max(size / device.bytes_per_us, op.flops / device.flops_per_us)
    return device.launch_us + work / device.speed


class _Loop:
    """Home is device 0 of the policy, the other one is 1."""

    def __init__(
        self,
        home: SimulatedDevice,
        device: SimulatedDevice,
        policy: str,
        set_aside_bytes: float,
    ) -> None:
        self.home, self.device, self.policy = home, device, policy
        self.room = device.memory_bytes - set_aside_bytes
        self.online = _C.OnlinePolicy(2)
        self.regret = _C.CopyRegret()
        self.weights: dict[int, _Weight] = {}
        self.held: dict[int, _Weight] = {}  # on the device
        self.held_bytes = 0.0
        self.ops = 0
        self.now = 0.0
        self.free = [0.0, 0.0]
        self.result_on, self.result_ready = 0, 0.0
        self.moved_bytes = 0.0
        self.at_home = 0

    def round(self, ops: Sequence[WeightOp]) -> None:
        for op in ops:
            self._op(op)
        self.now = max(self.now, *self.free)
        self.result_on, self.result_ready = 0, self.now

    def _link_us(self, size_bytes: float) -> float:
        return self.device.link_us + size_bytes / self.device.link_bytes_per_us

    def _op(self, op: WeightOp) -> None:
        self.ops += 1
        weight = self.weights.setdefault(op.weight, _Weight(op.weight_bytes))
        is_held = op.weight in self.held
        stays = is_held or self._would_stay(weight)
        copy_us = 0.0 if is_held else self._link_us(op.weight_bytes)
        costs = [_us(op, self.home), _us(op, self.device)]
        passes = self._link_us(op.result_bytes)
        # The result of the op before is brought first, by the queue of the device.
        moves = [passes * (self.result_on != 0), passes * (self.result_on != 1)]
        moves[1] += copy_us
        free = [max(each, self.now) for each in self.free]
        ready = [
            max(free[d], self.result_ready) + moves[d]
            if moves[d]
            else self.result_ready
            for d in (0, 1)
        ]
        chosen = self._choose(
            op, free, ready, costs, 0.0 if stays else copy_us, copy_us
        )
        weight.uses.add(self.ops)
        weight.saved = min(
            max((costs[0] - costs[1]) / self._link_us(op.weight_bytes), 0.0), 1.0
        )
        if chosen == 1 and not is_held:
            self._hold(op.weight, weight)
            self.moved_bytes += op.weight_bytes
        self.at_home += chosen == 0
        end = max(free[chosen], ready[chosen]) + costs[chosen]
        self.free[chosen] = end
        if chosen == 0:
            self.now = end  # PyTorch's kernel at home blocks the host
        self.result_on, self.result_ready = chosen, end

    def _choose(
        self,
        op: WeightOp,
        free: list[float],
        ready: list[float],
        costs: list[float],
        streams_us: float,
        copy_us: float,
    ) -> int:
        if self.policy != "auto":
            return 0 if self.policy == "home" else 1
        passes = self._link_us(op.result_bytes)
        leave = [passes * (d != self.online.best_alone) for d in (0, 1)]
        idle = all(each <= self.now for each in self.free)
        chosen: int = self.online.choose(
            free, ready, costs, leave, self.now, idle, [0.0, streams_us]
        )
        if chosen == 1 and copy_us == 0:
            self.regret.pay_off()
        if chosen == 0 and copy_us > 0 and streams_us == 0:
            ends = [max(f, r) + c for f, r, c in zip(free, ready, costs, strict=True)]
            gain = ends[0] - (ends[1] - copy_us)
            if gain > 0 and self.regret.add(gain, copy_us):
                return 1
        return chosen

    def _value(self, weight: _Weight) -> _C.CopyValue:
        return _C.CopyValue(weight.saved, weight.uses, self.ops)

    def _would_stay(self, weight: _Weight) -> bool:
        if self.held_bytes + weight.size_bytes <= self.room:
            return True
        own = self._value(weight)
        lower = sum(
            each.size_bytes
            for each in self.held.values()
            if self._value(each).is_clearly_below(own)
        )
        return lower >= weight.size_bytes

    def _hold(self, number: int, weight: _Weight) -> None:
        room = self.room - self.held_bytes
        if self.policy == "first layers" and weight.size_bytes > room:
            return
        while weight.size_bytes > room:
            least, _ = min(
                ((n, self._value(each)) for n, each in self.held.items()),
                key=itemgetter(1),
            )
            room += self.held[least].size_bytes
            self.held_bytes -= self.held.pop(least).size_bytes
        self.held[number] = weight
        self.held_bytes += weight.size_bytes
