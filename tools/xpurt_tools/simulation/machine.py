"""Simulated devices, and the cost of work on them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xpurt.mapping.auto.planning import TaskGraph
from xpurt_tools.workloads import Workload

INFINITY = float("inf")


@dataclass(frozen=True, slots=True)
class SimulatedDevice:
    """Times in microseconds, rates per microsecond.

    launch_us: the time before each task.
    step_us: the time of each operation in a chain of them, as in a factorization's
        panel.
    link_us, link_bytes_per_us: of the link to the other devices; a transfer pays the
        latency of both ends and has the lower rate.
    memory: devices that name the same memory read each other's results in place; ""
        is a memory of its own.
    memory_bytes: its size.
    shared_bytes_per_us: the bandwidth of that memory for all of its devices together;
        only `co_execute` considers it.
    speed: a factor on all rates but the link's; divides the costs of a `TaskGraph`.
    """

    name: str = "device"
    flops_per_us: float = 1e6
    bytes_per_us: float = 1e5
    launch_us: float = 0.0
    step_us: float = 0.0
    link_us: float = 0.0
    link_bytes_per_us: float = 1e4
    memory: str = ""
    memory_bytes: float = INFINITY
    shared_bytes_per_us: float = INFINITY
    speed: float = 1.0


def on_devices(work: Workload, devices: Sequence[SimulatedDevice]) -> TaskGraph:
    """A graph for `plan`: the cost of each task on each device, and of each edge
    between devices."""
    flops = np.array([task.flops for task in work.tasks])[:, None]
    size = np.array([task.bytes for task in work.tasks])[:, None]
    steps = np.array([task.steps for task in work.tasks])[:, None]

    def column(name: str) -> np.ndarray:
        return np.array([getattr(each, name) for each in devices])

    compute = np.maximum(flops / column("flops_per_us"), size / column("bytes_per_us"))
    compute += steps * column("step_us")
    costs = column("launch_us") + compute / column("speed")
    tables = {
        moved: transfer_times(devices, moved)
        for moved in {edge[2] for edge in work.edges}
    }
    edges = [(producer, consumer, tables[b]) for producer, consumer, b in work.edges]
    return TaskGraph(costs, edges, [task.name for task in work.tasks])


def transfer_times(devices: Sequence[SimulatedDevice], size_bytes: float) -> np.ndarray:
    """Times [devices, devices] of a transfer from row to column."""
    latency = np.array([each.link_us for each in devices])
    rate = np.array([each.link_bytes_per_us for each in devices])
    times: np.ndarray = (
        latency[:, None] + latency + size_bytes / np.minimum(rate[:, None], rate)
    )
    for i, one in enumerate(devices):
        for j, other in enumerate(devices):
            if one.memory and one.memory == other.memory:
                times[i, j] = 0.0
    return times


def edge_bytes(work: Workload, graph: TaskGraph) -> np.ndarray:
    """The bytes of each edge of the graph that `on_devices` made."""
    given = np.array([size for _, _, size in work.edges], dtype=np.float64)
    return given[graph.given_edge]


def scaled(graph: TaskGraph, devices: Sequence[SimulatedDevice]) -> TaskGraph:
    """The same tasks on devices of these speeds."""
    if all(each.speed == 1 for each in devices):
        return graph
    speed = np.array([each.speed for each in devices])
    edges = [
        (int(producer), int(consumer), graph.transfer(number))
        for number, (producer, consumer) in enumerate(
            zip(graph.producers, graph.consumers, strict=True)
        )
    ]
    return TaskGraph(graph.costs / speed, edges, graph.names)
