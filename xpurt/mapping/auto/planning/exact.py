"""The shortest possible schedule, by branch and bound; for small graphs."""

from collections.abc import Iterator
from operator import le

import numpy as np

from xpurt.errors import PlanningError
from xpurt.mapping.auto.planning.cpop import cpop
from xpurt.mapping.auto.planning.eft import eft
from xpurt.mapping.auto.planning.heft import heft
from xpurt.mapping.auto.planning.peft import peft
from xpurt.mapping.auto.planning.prices import device_prices
from xpurt.mapping.auto.planning.schedule import Schedule
from xpurt.mapping.auto.planning.task_graph import Floats, TaskGraph

MOST_TASKS = 16  # the search grows exponentially
KEPT_STATES = 500_000  # beyond this number, the search keeps no more states

# A schedule is better only if its makespan is smaller by more than rounding errors.
_BETTER = 1 - 1e-12


def exact(graph: TaskGraph) -> Schedule:
    """A schedule of the smallest makespan. Raises PlanningError for more than 16
    tasks."""
    if graph.tasks > MOST_TASKS:
        raise PlanningError(
            f'policy "exact" takes graphs of at most {MOST_TASKS} tasks; found '
            f'{graph.tasks}. "heft" plans large ones.'
        )
    begin = min((each(graph) for each in (heft, cpop, peft, eft)), key=_makespan)
    search = _Search(graph, begin)
    if graph.tasks:
        search.go()
    return Schedule("exact", graph, search.placement, search.start, search.finish)


def _makespan(schedule: Schedule) -> float:
    return schedule.makespan


class _Search:
    """Appends tasks to devices in every order that makes a difference.

    Every schedule that can't be shortened by moving one task to an earlier time results
    from appending its tasks by their start. A partial schedule is dropped if its bound
    reaches the best makespan, or if an earlier one of the same tasks, with the results
    that are still needed on the same devices, was no later in anything.
    """

    def __init__(self, graph: TaskGraph, best: Schedule) -> None:
        self.tasks, self.devices = graph.costs.shape
        self.costs = graph.costs.tolist()
        prices = device_prices(graph)
        self.price: list[float] = prices.tolist()
        self.least = (graph.costs * prices).min(axis=1, initial=np.inf).tolist()
        self.after = _after(graph).tolist()
        self.parents = [
            [
                (int(graph.producers[edge]), graph.transfer(edge).tolist())
                for edge in graph.edge_numbers_in(task)
            ]
            for task in range(graph.tasks)
        ]
        self.children = [graph.children(task) for task in range(graph.tasks)]
        self.twins = _twins(graph)
        self.best = best.makespan
        self.placement = best.placement.copy()
        self.start, self.finish = best.start.copy(), best.finish.copy()
        # The partial schedule.
        self.where = [-1] * self.tasks
        self.begins = [0.0] * self.tasks
        self.ends = [0.0] * self.tasks
        self.free_at = [0.0] * self.devices
        self.missing = [len(parents) for parents in self.parents]
        self.seen: dict[tuple[int, ...], list[tuple[float, ...]]] = {}
        self.states = 0

    def go(self) -> None:
        self._extend(0, sum(self.least))

    def _extend(self, placed: int, work: float) -> None:
        """Continues a partial schedule.

        placed: a bit per task. work: the smallest cost of the other tasks, in prices.
        """
        if placed == (1 << self.tasks) - 1:
            self._keep()
            return
        for bound, task, device, start in sorted(self._steps()):
            left = work - self.least[task]
            end = start + self.costs[task][device]
            area = (
                sum(self.free_at) - self.free_at[device] + end + left
            ) / self.devices
            if max(bound, area) >= self.best * _BETTER:
                continue
            before = self.free_at[device]
            self._place(task, device, start, end)
            if self._is_new(placed | 1 << task):
                self._extend(placed | 1 << task, left)
            self._take_back(task, device, before)

    def _steps(self) -> Iterator[tuple[float, int, int, float]]:
        """Bound, task, device and start of each possible next step.

        A task without children that could begin at once anywhere may as well be the
        last on its device. Such tasks come in a fixed order when no others are left.
        """
        tried_empty: set[int] = set()
        devices = []
        for device, free_at in enumerate(self.free_at):
            if free_at == 0 and device not in self.where:
                # Of several empty devices that are alike, one is enough.
                if self.twins[device] in tried_empty:
                    continue
                tried_empty.add(self.twins[device])
            devices.append(device)
        last = None
        others = False
        for task in range(self.tasks):
            if self.where[task] >= 0 or self.missing[task]:
                continue
            ready = self._ready(task)
            if not self.children[task] and all(map(le, ready, self.free_at)):
                if last is None or self.least[task] > self.least[last]:
                    last = task
                continue
            others = True
            for device in devices:
                yield self._step(task, device, max(self.free_at[device], ready[device]))
        if last is not None and not others:
            for device in devices:
                yield self._step(last, device, self.free_at[device])

    def _step(
        self, task: int, device: int, start: float
    ) -> tuple[float, int, int, float]:
        end = start + self.costs[task][device]
        return end + self.after[task][device], task, device, start

    def _ready(self, task: int) -> list[float]:
        """The times at which its inputs are on each device. Its parents are placed."""
        ready = [0.0] * self.devices
        for parent, times in self.parents[task]:
            end, moved = self.ends[parent], times[self.where[parent]]
            ready = [max(r, end + m) for r, m in zip(ready, moved, strict=True)]
        return ready

    def _place(self, task: int, device: int, start: float, end: float) -> None:
        self.where[task] = device
        self.begins[task], self.ends[task] = start, end
        self.free_at[device] = end
        for child in self.children[task]:
            self.missing[child] -= 1

    def _take_back(self, task: int, device: int, free_at: float) -> None:
        self.where[task] = -1
        self.free_at[device] = free_at
        for child in self.children[task]:
            self.missing[child] += 1

    def _is_new(self, placed: int) -> bool:
        """Whether no earlier partial schedule was as good as this one in everything."""
        needed = [
            task
            for task in range(self.tasks)
            if placed >> task & 1
            and any(self.where[c] < 0 for c in self.children[task])
        ]
        key = (placed, *(self.where[task] for task in needed))
        times = (*self.free_at, *(self.ends[task] for task in needed))
        known = self.seen.setdefault(key, [])
        for other in known:
            if all(a <= b for a, b in zip(other, times, strict=True)):
                return False
        if self.states < KEPT_STATES:
            self.states += 1
            known.append(times)
        return True

    def _keep(self) -> None:
        makespan = max(self.ends)
        if makespan < self.best * _BETTER:
            self.best = makespan
            self.placement[:] = self.where
            self.start[:], self.finish[:] = self.begins, self.ends


def _after(graph: TaskGraph) -> Floats:
    """The smallest time from a task's end on a device to the graph's end, [tasks,
    devices], if devices are never busy."""
    table = np.zeros(graph.costs.shape)
    for task in reversed(graph.order):
        for edge in graph.edges_out(task):
            child = graph.consumers[edge]
            each = graph.transfer(edge) + graph.costs[child] + table[child]
            table[task] = np.maximum(table[task], each.min(axis=1))
    return table


def _twins(graph: TaskGraph) -> list[int]:
    """For each device the first one that is interchangeable with it."""
    first = list(range(graph.devices))
    transfers = [graph.transfer(edge) for edge in range(len(graph.producers))]
    for one in range(graph.devices):
        for other in range(one):
            change = list(range(graph.devices))
            change[one], change[other] = other, one
            if (graph.costs[:, change] == graph.costs).all() and all(
                (each[np.ix_(change, change)] == each).all() for each in transfers
            ):
                first[one] = first[other]
                break
    return first
