"""The shortest possible schedule, by branch and bound; for small graphs."""

from operator import le, mul

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
        for bound, task, device, start in self._steps():
            left = work - self.least[task]
            end = start + self.costs[task][device]
            before = self.free_at[device]
            self._place(task, device, start, end)
            # No device ends later than the makespan, and the prices add up to 1.
            area = left + sum(map(mul, self.price, self.free_at))
            is_open = max(bound, area) < self.best * _BETTER
            if is_open and self._is_new(placed | 1 << task):
                self._extend(placed | 1 << task, left)
            self._take_back(task, device, before)

    def _steps(self) -> list[tuple[float, int, int, float]]:
        """Bound, task, device and start of each possible next step.

        When only tasks are left that nobody reads and that could begin at once
        anywhere, their order changes nothing. They then come in a fixed order. Beside
        other tasks they are not deferred: the device may be idle while one of those
        waits for its inputs, and that time would be lost.
        """
        left = {
            task: self._ready(task)
            for task in range(self.tasks)
            if self.where[task] < 0 and not self.missing[task]
        }
        if not any(
            self.children[task] or not all(map(le, ready, self.free_at))
            for task, ready in left.items()
        ):
            longest = max(left, key=self.least.__getitem__)
            left = {longest: left[longest]}
        devices = self._distinct_devices()
        gaps = [self._first_end_of_unread(left, device) for device in devices]
        steps = []
        for task, ready in left.items():
            found = [
                self._step(task, device, max(self.free_at[device], ready[device]))
                for device in devices
            ]
            if min(found)[0] >= self.best * _BETTER:
                return []  # this task is too late everywhere
            steps += [
                step for step, gap in zip(found, gaps, strict=True) if step[3] <= gap
            ]
        return sorted(steps)

    def _distinct_devices(self) -> list[int]:
        """Of several empty devices that are alike, one is enough."""
        tried_empty: set[int] = set()
        devices = []
        for device, free_at in enumerate(self.free_at):
            if free_at == 0 and device not in self.where:
                if self.twins[device] in tried_empty:
                    continue
                tried_empty.add(self.twins[device])
            devices.append(device)
        return devices

    def _first_end_of_unread(self, left: dict[int, list[float]], device: int) -> float:
        """The earliest end on a device of a task that nobody reads.

        No task needs to begin there later than that with the device idle before: the
        one that nobody reads fits between, and its move there delays nothing.
        """
        return min(
            (
                max(self.free_at[device], ready[device]) + self.costs[task][device]
                for task, ready in left.items()
                if not self.children[task]
            ),
            default=np.inf,
        )

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
