"""List scheduling: tasks by priority, each inserted where it finishes first."""

from collections.abc import Iterator, Sequence

import numpy as np

from xpurt.mapping.auto.planning.parents_first import parents_first
from xpurt.mapping.auto.planning.ranks import without_noise
from xpurt.mapping.auto.planning.schedule import Schedule
from xpurt.mapping.auto.planning.task_graph import Floats, Integers, TaskGraph
from xpurt.mapping.auto.planning.timeline import Timeline

# Differences that rounding errors can cause count as ties.
_EARLIER = 1 - 1e-12


def by_priority(graph: TaskGraph, priority: Floats) -> Iterator[int]:
    """All tasks, parents first: always the task of the highest priority among those
    whose parents were yielded; of equals, the one with the lower number."""
    turn = (-without_noise(priority)).tolist()
    return parents_first(range(graph.tasks), graph.children, turn.__getitem__)


class Builder:
    """A schedule that grows task by task, parents first."""

    def __init__(self, graph: TaskGraph) -> None:
        self.graph = graph
        self.placement: Integers = np.zeros(graph.tasks, dtype=np.intp)
        self.start = np.zeros(graph.tasks)
        self.finish = np.zeros(graph.tasks)
        self.timelines = [Timeline() for _ in range(graph.devices)]

    def place(
        self,
        task: int,
        devices: Sequence[int] | None = None,
        afterwards: Floats | None = None,
    ) -> None:
        """Puts a task on the device where the sum of its finish and `afterwards` is
        smallest; of equals, the lower device.

        devices: the candidates; all by default.
        afterwards: one time per device.
        """
        ready = self.graph.ready(task, self.placement, self.finish).tolist()
        cost = self.graph.costs[task].tolist()
        extra = [0.0] * len(cost) if afterwards is None else afterwards.tolist()
        best = (float("inf"), 0.0, 0)
        for device in range(len(cost)) if devices is None else devices:
            timeline = self.timelines[device]
            least = max(ready[device], timeline.first_idle) + cost[device]
            if least + extra[device] >= best[0] * _EARLIER:
                continue
            start = timeline.earliest(ready[device], cost[device])
            end = start + cost[device] + extra[device]
            if end < best[0] * _EARLIER:
                best = (end, start, device)
        _, start, device = best
        self.placement[task] = device
        self.start[task] = start
        self.finish[task] = start + cost[device]
        self.timelines[device].take(start, start + cost[device])

    def schedule(self, policy: str) -> Schedule:
        return Schedule(policy, self.graph, self.placement, self.start, self.finish)
