"""Strategies for placing tasks: a plan, or the eager scheduler's decision for each."""

from collections.abc import Iterable

import numpy as np

from xpurt.errors import PlanningError
from xpurt.mapping.auto.planning import (
    Schedule,
    TaskGraph,
    Timeline,
    online_policy,
    parents_first,
)
from xpurt_tools.simulation.engine import Engine


class Online:
    """Ops in program order, or by priority among those that are queued.

    lookahead: the number of submitted ops that the scheduler holds back. It knows their
        dependencies, and sends on first the op on which most work depends.
    fits: of shape [tasks, devices], whether a task fits on a device; everywhere by
        default.
    overtakes: whether on a device an op that is ready runs before one that came earlier
        and still waits.
    """

    def __init__(
        self,
        graph: TaskGraph,
        lookahead: int = 0,
        fits: np.ndarray | None = None,
        overtakes: bool = True,
    ) -> None:
        # With a lookahead, the order of the queue is deliberate, and is kept.
        self.in_order = lookahead > 0 or not overtakes
        self.overtakes = overtakes
        self.graph = graph
        self.costs = (
            graph.costs if fits is None else np.where(fits, graph.costs, np.inf)
        )
        self.lookahead = lookahead
        self.policy = online_policy(graph)
        self.timelines = [Timeline() for _ in range(graph.devices)]
        # For each device: how much later than predicted its last task ended.
        self.late = np.zeros(graph.devices)
        self.predicted = np.zeros(graph.tasks)
        self.alive = np.ones(graph.devices, dtype=bool)
        self.waiting = list(reversed(graph.order))
        if lookahead:
            self.mean_cost = graph.costs.mean(axis=1)
            self.mean_transfer = graph.mean_transfers()

    def offer(self, engine: Engine) -> None:
        while self.waiting and self.alive.any():
            if self.lookahead:
                seen = [self.waiting.pop() for _ in self.waiting[-self.lookahead :]]
                # The rest is considered again, with the ops behind it.
                ordered = self._by_rank(seen)
                now = ordered[: max(1, len(ordered) // 4)] if self.waiting else ordered
                chosen = set(now)
                self.waiting += [task for task in reversed(seen) if task not in chosen]
            else:
                now = [self.waiting.pop()]
            for task in now:
                self._place(engine, task)

    def finished(self, engine: Engine, task: int) -> None:
        self.late[engine.placement[task]] = engine.now - self.predicted[task]

    def failed(self, engine: Engine, device: int, again: list[int]) -> None:
        self.alive[device] = False
        self.waiting += reversed(again)
        position = {task: place for place, task in enumerate(self.graph.order)}
        self.waiting.sort(key=position.__getitem__, reverse=True)

    def _place(self, engine: Engine, task: int) -> None:
        ready = self._ready(engine, task)
        cost = np.where(self.alive, self.costs[task], np.inf)
        if not np.isfinite(cost).any():
            raise PlanningError(f"no device is left that has room for task {task}")
        begins = [
            self._begin(timeline, max(ready[device], engine.now) - late, cost[device])
            + late
            if np.isfinite(cost[device])
            else np.inf
            for device, (timeline, late) in enumerate(
                zip(self.timelines, self.late.tolist(), strict=True)
            )
        ]
        leave = self.graph.leave(task, self.policy.best_alone)
        device = self.policy.choose(begins, ready, cost, leave, engine.now)
        begin = begins[device] - self.late[device]
        self.timelines[device].take(begin, begin + cost[device])
        self.predicted[task] = begin + cost[device]
        engine.place(task, device, begin if self.lookahead else 0.0)

    def _begin(self, timeline: Timeline, ready_at: float, cost: float) -> float:
        if self.overtakes:
            return timeline.earliest(ready_at, cost)
        return max(timeline.last_idle, ready_at)

    def _ready(self, engine: Engine, task: int) -> np.ndarray:
        """The times at which the task's inputs are on each device, as far as known."""
        ready = np.zeros(self.graph.devices)
        for edge in self.graph.edge_numbers_in(task):
            parent = int(self.graph.producers[edge])
            if engine.is_done(parent):
                there = engine.now + np.array(
                    [engine.arrival(edge, d) for d in range(self.graph.devices)]
                )
            else:
                source = int(engine.placement[parent])
                end = max(engine.now, self.predicted[parent] + self.late[source])
                there = end + self.graph.transfer(edge)[source]
            ready = np.maximum(ready, there)
        return ready

    def _by_rank(self, tasks: list[int]) -> list[int]:
        """Parents first, else by the longest path to the end of the given tasks."""
        seen = set(tasks)
        rank: dict[int, float] = {}
        inside: dict[int, list[int]] = {}
        for task in reversed(tasks):
            longest = 0.0
            inside[task] = []
            for edge in self.graph.edges_out(task).tolist():
                child = int(self.graph.consumers[edge])
                if child in seen:
                    inside[task].append(child)
                    longest = max(longest, self.mean_transfer[edge] + rank[child])
            rank[task] = longest + self.mean_cost[task]
        order = parents_first(tasks, inside.__getitem__, lambda task: -rank[task])
        return list(order)


class Planned:
    """Tasks on the devices, and in the order, of a schedule. The unfinished tasks of a
    device that fails go where the eager scheduler would send them."""

    in_order = True

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.placed = False
        self.afterwards: Online | None = None

    def offer(self, engine: Engine) -> None:
        if not self.placed:
            self.placed = True
            for task in _in_time(self.schedule):
                engine.place(task, int(self.schedule.placement[task]))
        if self.afterwards is not None:
            self.afterwards.offer(engine)

    def finished(self, engine: Engine, task: int) -> None:
        if self.afterwards is not None:
            self.afterwards.finished(engine, task)

    def failed(self, engine: Engine, device: int, again: list[int]) -> None:
        if self.afterwards is None:
            self.afterwards = Online(engine.graph)
            self.afterwards.waiting = []
            self.afterwards.predicted[:] = self.schedule.finish
            for task in _in_time(self.schedule):
                timeline = self.afterwards.timelines[self.schedule.placement[task]]
                start = float(self.schedule.start[task])
                timeline.take(start, float(self.schedule.finish[task]))
        self.afterwards.failed(engine, device, again)


def _in_time(schedule: Schedule) -> Iterable[int]:
    place = {task: number for number, task in enumerate(schedule.graph.order)}
    return sorted(
        schedule.graph.order,
        key=lambda t: (schedule.start[t], schedule.finish[t], place[t]),
    )
