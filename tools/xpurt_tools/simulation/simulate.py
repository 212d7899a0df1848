"""Running a graph on simulated devices."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from os import PathLike

import numpy as np

from xpurt.errors import PlanningError
from xpurt.mapping.auto.planning import POLICIES, Schedule, TaskGraph, plan
from xpurt_tools.simulation.bounds import lower_bound
from xpurt_tools.simulation.engine import Engine, Strategy
from xpurt_tools.simulation.machine import (
    SimulatedDevice,
    edge_bytes,
    on_devices,
    scaled,
)
from xpurt_tools.simulation.published import Dmda, OpenVino
from xpurt_tools.simulation.residency import Residency
from xpurt_tools.simulation.strategies import Online, Planned
from xpurt_tools.workloads import Workload

LOOKAHEAD = 128  # ops
Devices = int | Sequence[SimulatedDevice] | Sequence[float]


@dataclass(frozen=True, eq=False)
class Simulation:
    """The outcome of a simulation.

    utilization: per device, the share of the makespan in which it worked.
    transfers, transferred_bytes: results that went to another device; bytes are known
        only for a `Workload`.
    bound: of the makespan: the critical path or the area, whichever is more.
    repeated: tasks that ran more than once, since a device failed.
    evictions: copies that were evicted from a device whose memory was full.
    schedule: the device and times of each task's last run.
    devices: their names.
    """

    policy: str
    makespan: float
    utilization: np.ndarray
    transfers: int
    transferred_bytes: float
    bound: float
    repeated: int
    evictions: int
    schedule: Schedule = field(repr=False)
    devices: tuple[str, ...] = field(repr=False)

    @property
    def ratio(self) -> float:
        """The makespan divided by the bound; 1 is perfect."""
        return self.makespan / self.bound if self.bound else 1.0

    def plot(self, path: str | PathLike[str]) -> None:
        """As `Schedule.plot`."""
        self.schedule.plot(path, self.devices)


def simulate(
    graph: TaskGraph | Workload,
    devices: Devices,
    policy: str = "eft",
    *,
    noise: float = 0.0,
    failures: Mapping[int, float] | None = None,
    seed: int = 0,
) -> Simulation:
    """Runs a graph by discrete events.

    graph: a `TaskGraph` with costs of its own, or a `Workload`, whose costs follow from
        the devices.
    devices: their number, or a speed for each by which a `TaskGraph`'s costs are
        divided, or `SimulatedDevice`s.
    policy: "eft": the eager scheduler's decision, op by op in program order; on a
        device, an op that is ready overtakes those that wait. "in-order": the same
        without overtaking. "lookahead": the same decision, for the most urgent of 128
        queued ops first. "dmda", "dmdas": as StarPU decides. "openvino",
        "openvino-cumulative": as OpenVINO's AUTO does, with one request, or one for
        each independent part of the program. Or a plan of `plan`, which is not changed during the run:
        "heft", "cpop", "peft", "exact". Plans ignore the size of memory.
    noise: the standard deviation of the logarithm of a task's time; the policy knows
        the times without noise.
    failures: the time at which a device fails, by device. Its unfinished tasks, and
        results that it alone held, are computed again on other devices.
    seed: of the noise.

    Raises PlanningError, a ValueError, for an empty list of devices, an unknown policy,
    invalid numbers, a task that fits in no device's memory, and if no device is left.
    """
    machine = _machine(graph, devices)
    if isinstance(graph, Workload):
        on = on_devices(graph, machine)
        sizes = edge_bytes(graph, on)
    elif isinstance(graph, TaskGraph):
        on = scaled(graph, machine)
        sizes = np.zeros(len(on.producers))
    else:
        raise PlanningError(
            f"simulate wants a TaskGraph or a Workload, not {type(graph).__name__}"
        )
    fits = _fits(on, sizes, machine)
    factors = _factors(on, noise, seed)
    size_list = sizes.tolist()
    engine = Engine(
        on,
        _strategy(on, policy, fits, machine),
        lambda task, device: float(on.costs[task, device] * factors[task, device]),
        Residency([each.memory_bytes for each in machine]),
        size_list.__getitem__,
        _failures(failures, len(machine)),
    )
    engine.run()
    schedule = Schedule(policy, on, engine.placement, engine.start, engine.finish)
    makespan = schedule.makespan
    return Simulation(
        policy,
        makespan,
        engine.busy / makespan if makespan else np.zeros(len(machine)),
        engine.transfers,
        engine.transferred_bytes,
        lower_bound(on),
        engine.repeated,
        engine.residency.evictions,
        schedule,
        tuple(each.name for each in machine),
    )


OTHERS = ("in-order", "lookahead", "dmda", "dmdas", "openvino", "openvino-cumulative")


def _strategy(
    graph: TaskGraph, policy: str, fits: np.ndarray, machine: Sequence[SimulatedDevice]
) -> Strategy:
    if policy == "eft":
        return Online(graph, fits=fits)
    if policy == "in-order":
        return Online(graph, fits=fits, overtakes=False)
    if policy == "lookahead":
        return Online(graph, LOOKAHEAD, fits)
    if policy in ("dmda", "dmdas"):
        return Dmda(graph, fits, by_priority=policy == "dmdas")
    if policy in ("openvino", "openvino-cumulative"):
        # CPUs come last; among equals the order of the machine counts.
        listed = sorted(range(len(machine)), key=lambda d: machine[d].name == "cpu")
        return OpenVino(graph, listed, policy.endswith("cumulative"))
    if not isinstance(policy, str) or policy not in POLICIES:
        known = ", ".join([*OTHERS, *POLICIES])
        raise PlanningError(f"policy {policy!r} is unknown; there are {known}")
    return Planned(plan(graph, policy))


def _fits(
    graph: TaskGraph, sizes: np.ndarray, machine: Sequence[SimulatedDevice]
) -> np.ndarray:
    """Whether the inputs and the result of a task fit on a device, [tasks, devices].

    Raises PlanningError for a task that fits nowhere.
    """
    taken = np.bincount(graph.consumers, weights=sizes, minlength=graph.tasks)
    made = np.zeros(graph.tasks)
    np.maximum.at(made, graph.producers, sizes)
    room = np.array([each.memory_bytes for each in machine])
    fits = (taken + made)[:, None] <= room
    for task in np.flatnonzero(~fits.any(axis=1)).tolist():
        raise PlanningError(
            f"{graph.names[task]} takes and makes {taken[task] + made[task]:,.0f} bytes; "
            f"the largest device has {room.max():,.0f}"
        )
    return fits


def _machine(graph: TaskGraph | Workload, devices: Devices) -> list[SimulatedDevice]:
    if isinstance(devices, int):
        found = [SimulatedDevice(f"device {number}") for number in range(devices)]
    else:
        found = [_device(each, number) for number, each in enumerate(devices)]
    if not found:
        raise PlanningError("there are no devices to simulate; name one at least")
    if isinstance(graph, TaskGraph) and graph.devices != len(found):
        raise PlanningError(
            f"the graph has costs for {graph.devices} devices, but there are "
            f"{len(found)}"
        )
    return found


def _device(given: object, number: int) -> SimulatedDevice:
    if isinstance(given, SimulatedDevice):
        return given
    if isinstance(given, Real) and math.isfinite(float(given)) and float(given) > 0:
        return SimulatedDevice(f"device {number}", speed=float(given))
    raise PlanningError(
        f"device {number} is {given!r}, not a SimulatedDevice or a positive speed"
    )


def _factors(graph: TaskGraph, noise: float, seed: int) -> np.ndarray:
    if not (isinstance(noise, Real) and math.isfinite(noise) and noise >= 0):
        raise PlanningError(f"noise is a finite number, not negative; found {noise!r}")
    if noise == 0:
        return np.ones(graph.costs.shape)
    return np.random.default_rng(seed).lognormal(0.0, noise, graph.costs.shape)


def _failures(given: Mapping[int, float] | None, devices: int) -> dict[int, float]:
    failures = dict(given or {})
    for device, at in failures.items():
        if not (isinstance(device, int | np.integer) and 0 <= device < devices):
            raise PlanningError(
                f"device {device!r} fails, but there are {devices}, from 0 on"
            )
        if not (isinstance(at, Real) and at >= 0):
            raise PlanningError(
                f"device {device} fails at {at!r}: times are not negative"
            )
    return failures
