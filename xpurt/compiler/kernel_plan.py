"""A plan for the ops of a graph on several devices. Pure: uses no device.

Note [Planned graphs]
~~~~~~~~~~~~~~~~~~~~~
In eager mode AUTO sees one op at a time. A compiled graph is known as a whole, so its
ops are planned before they are fused: HEFT (Topcuoglu, Hariri and Wu, 2002), with the
costs of the ordinal's devices. The plan gives each op a device, ops of different devices
are not fused, and a kernel takes its device along as a preference, so that one that is
excluded meanwhile, or lacks a type, is not used. Products and convolutions are in the
plan, too, but run as eager ops, where AUTO decides.

A plan has to be faster than the best device alone by a tenth, or there is none. Where
the host reads the memory, measured times then decide between planned kernels and native
code: see Note [Measured forms].

An op that is fused with its producer reads nothing from memory. Before fusion it counts
as such if both compute the same number of elements. No launches count, since most are
fused away.

Rejected: a plan of the fused kernels. Inductor fuses independent ops that read the same
tensor, and a kernel of two branches can't run on two devices.
"""

from collections.abc import Sequence
from dataclasses import dataclass

# A plan has to take less than this fraction of the time of the best device alone.
GAIN = 0.9

# A row of _C.device_costs().
Costs = tuple[float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class Task:
    """An op of a graph.

    size_bytes: read from and written to memory.
    given_bytes: of inputs that each call brings anew, at home.
    reads: (position of the task that makes it, bytes) of each value that it reads.
    """

    name: str
    flops: float
    size_bytes: float
    given_bytes: float = 0
    reads: tuple[tuple[int, float], ...] = ()


def devices_of(
    tasks: Sequence[Task], costs: Sequence[Costs], home: int
) -> dict[str, int]:
    """The device of each task by its name; empty if one device alone is about as fast.

    costs: a row per device. home: the device that holds the inputs.
    """
    from xpurt.mapping import TaskGraph, plan

    if len(tasks) < 2 or len(costs) < 2:
        return {}
    times = [
        [_time(task, row, at_home=device == home) for device, row in enumerate(costs)]
        for task in tasks
    ]
    edges = [
        (producer, number, _transfer(size_bytes, costs, home))
        for number, task in enumerate(tasks)
        for producer, size_bytes in task.reads
    ]
    schedule = plan(TaskGraph(times, edges, [task.name for task in tasks]))
    alone = min(map(sum, zip(*times, strict=True)))
    if schedule.makespan >= GAIN * alone:
        return {}
    names = schedule.graph.names
    return dict(zip(names, schedule.placement.tolist(), strict=True))


def _time(task: Task, row: Costs, *, at_home: bool) -> float:
    _, bytes_per_us, flops_per_us, copy_launch_us, copy_bytes_per_us = row
    work = max(task.size_bytes / bytes_per_us, task.flops / flops_per_us)
    if at_home or not task.given_bytes:
        return work
    return work + copy_launch_us + task.given_bytes / copy_bytes_per_us


def _transfer(
    size_bytes: float, costs: Sequence[Costs], home: int
) -> list[list[float]]:
    """Times from row to column. Devices other than home exchange bytes by way of it."""
    to_home = [
        0.0 if device == home else row[3] + size_bytes / row[4]
        for device, row in enumerate(costs)
    ]
    return [[one + other for other in to_home] for one in to_home]
