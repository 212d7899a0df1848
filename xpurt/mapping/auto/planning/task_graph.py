"""A graph of tasks: the cost of each on each device, and their dependencies."""

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from xpurt.errors import PlanningError
from xpurt.mapping.auto.planning.parents_first import parents_first

if TYPE_CHECKING:  # slow to import, and `import xpurt` imports this file
    from numpy.typing import ArrayLike

Floats = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.intp]]
TransferTime: TypeAlias = "float | Callable[[int, int], float] | ArrayLike"
Edge: TypeAlias = "tuple[int, int, TransferTime]"


class TaskGraph:
    """Tasks and the edges between them.

    costs: times of shape [tasks, devices]; tasks are in program order.
    edges: (producer, consumer, transfer_time) each. The transfer is paid if the two run
        on different devices: a number, a function (from_device, to_device), or an array
        of shape [devices, devices] whose diagonal does not count.
    names: one per task.

    Raises PlanningError, a ValueError, for times that are negative, infinite or NaN,
    for shapes that do not fit, tasks that do not exist, and cycles.
    """

    def __init__(
        self,
        costs: "ArrayLike",
        edges: "Iterable[Edge]",
        names: Sequence[str] | None = None,
    ) -> None:
        self.costs = _costs(costs)
        self.tasks, self.devices = self.costs.shape
        self.names = _names(names, self.tasks)
        transfers = _Transfers(self.devices)
        ends = [
            (*_ends(each, number, self.tasks), *transfers.add(each[2], number), number)
            for number, each in enumerate(map(tuple, edges))
        ]
        # By consumer: the edges into one task are adjacent.
        ends.sort(key=lambda each: each[1])
        self.producers: Integers = np.array([each[0] for each in ends], dtype=np.intp)
        self.consumers: Integers = np.array([each[1] for each in ends], dtype=np.intp)
        self._scale: Floats = np.array([each[3] for each in ends], dtype=np.float64)
        self._table: Integers = np.array([each[2] for each in ends], dtype=np.intp)
        # The position of each of these edges in the argument `edges`.
        self.given_edge: Integers = np.array([each[4] for each in ends], dtype=np.intp)
        self._tables = transfers.tables()
        self._first_in: list[int] = np.searchsorted(
            self.consumers, np.arange(self.tasks + 1)
        ).tolist()
        by_producer = np.argsort(self.producers, kind="stable")
        self._by_producer: Integers = by_producer
        self._first_out: list[int] = np.searchsorted(
            self.producers[by_producer], np.arange(self.tasks + 1)
        ).tolist()
        self.order = self._sorted()

    def __repr__(self) -> str:
        return (
            f"TaskGraph({self.tasks} tasks on {self.devices} devices, "
            f"{len(self.producers)} edges)"
        )

    def edges_in(self, task: int) -> slice:
        """The positions in `producers` and `consumers` of the edges into a task."""
        return slice(self._first_in[task], self._first_in[task + 1])

    def edge_numbers_in(self, task: int) -> range:
        """The same positions as a range."""
        return range(self._first_in[task], self._first_in[task + 1])

    def edges_out(self, task: int) -> Integers:
        """The positions in `producers` and `consumers` of the edges out of a task."""
        return self._by_producer[self._first_out[task] : self._first_out[task + 1]]

    def children(self, task: int) -> list[int]:
        """The children of a task, once for each edge."""
        children: list[int] = self.consumers[self.edges_out(task)].tolist()
        return children

    def piece(self, edge: int) -> tuple[int, int, float]:
        """A key of the data on an edge: equal for the same part of the same result."""
        producer, table = int(self.producers[edge]), int(self._table[edge])
        return producer, table, float(self._scale[edge])

    def transfer(self, edge: int) -> Floats:
        """Times [devices, devices] from row to column; 0 on the diagonal."""
        times: Floats = self._tables[self._table[edge]] * self._scale[edge]
        return times

    def transfers(self, edges: slice | Integers, places: Integers) -> Floats:
        """Times [edges, devices] from `places[i]`, the device of edge i's producer."""
        table = self._tables[self._table[edges], places]
        times: Floats = table * self._scale[edges][:, None]
        return times

    def ready(self, task: int, placement: Integers, finish: Floats) -> Floats:
        """The times at which a task's inputs are on each device. Its parents are
        placed."""
        edges = self.edges_in(task)
        if edges.start == edges.stop:
            return np.zeros(self.devices)
        parents = self.producers[edges]
        there = finish[parents][:, None] + self.transfers(edges, placement[parents])
        latest: Floats = there.max(axis=0)
        return latest

    def leave(self, task: int, to_device: int) -> Floats:
        """Times [devices] of moving a task's results from each device to `to_device`;
        the entry of `to_device` is the time to the farthest other device."""
        edges = self.edges_out(task)
        if len(edges) == 0:
            return np.zeros(self.devices)
        table = self._tables[self._table[edges], :, to_device]
        most: Floats = (table * self._scale[edges][:, None]).max(axis=0)
        away = self._tables[self._table[edges], to_device].max(axis=1)
        most[to_device] = (away * self._scale[edges]).max()
        return most

    def mean_transfers(self) -> Floats:
        """The mean of each edge over ordered pairs of different devices."""
        pairs = max(1, self.devices * (self.devices - 1))
        mean: Floats = self._tables.sum(axis=(1, 2)) / pairs
        return mean[self._table] * self._scale

    def _sorted(self) -> list[int]:
        """All tasks, parents first, else in program order. Raises PlanningError for a
        cycle."""
        order = list(parents_first(range(self.tasks), self.children, lambda task: task))
        if len(order) < self.tasks:
            circle = " -> ".join(self.names[task] for task in self._circle(set(order)))
            raise PlanningError(f"tasks wait for each other: {circle}")
        return order

    def _circle(self, free: set[int]) -> list[int]:
        """A cycle among the tasks that are not in `free`."""
        seen: dict[int, None] = {}
        task = next(task for task in range(self.tasks) if task not in free)
        while task not in seen:
            seen[task] = None
            parents = self.producers[self.edges_in(task)].tolist()
            task = next(parent for parent in parents if parent not in free)
        steps = list(seen)
        return [task, *reversed(steps[steps.index(task) :])]


class _Transfers:
    """Transfer times as (table, scale), with a table for each kind of them."""

    def __init__(self, devices: int) -> None:
        self.devices = devices
        # The table for a number: the same between any two devices.
        self.kept: list[Floats] = [1.0 - np.eye(devices)]
        # By id(); the object is kept, so that its id is not used again.
        self.known: dict[int, tuple[int, object]] = {}

    def tables(self) -> Floats:
        return np.stack(self.kept)

    def add(self, time: Any, number: int) -> tuple[int, float]:
        if isinstance(time, Real) or (isinstance(time, np.ndarray) and time.ndim == 0):
            scale = float(time)
            if not (math.isfinite(scale) and scale >= 0):
                raise PlanningError(
                    f"edge {number} takes {scale}: times are finite and not negative"
                )
            return 0, scale
        if id(time) not in self.known:
            self.known[id(time)] = (len(self.kept), time)
            self.kept.append(self._table(time, number))
        return self.known[id(time)][0], 1.0

    def _table(self, time: Any, number: int) -> Floats:
        shape = (self.devices, self.devices)
        if callable(time):
            table = np.zeros(shape)
            for i, j in np.ndindex(shape):
                if i != j:
                    table[i, j] = time(i, j)
        else:
            table = _array(time, f"the transfer time of edge {number}").copy()
        if table.shape != shape:
            raise PlanningError(
                f"the transfer time of edge {number} is a number, a function or an "
                f"array of {self.devices} x {self.devices} devices; found the shape "
                f"{table.shape}"
            )
        np.fill_diagonal(table, 0.0)
        if not (np.isfinite(table).all() and (table >= 0).all()):
            raise PlanningError(
                f"edge {number} has transfer times that are negative, infinite or NaN"
            )
        return table


def _costs(given: "ArrayLike") -> Floats:
    costs = _array(given, "costs").copy()
    if costs.ndim != 2 or costs.shape[1] == 0:
        raise PlanningError(
            "costs are of the shape [tasks, devices], with one device at least; found "
            f"{costs.shape}"
        )
    bad = np.argwhere(~(np.isfinite(costs) & (costs >= 0)))
    if len(bad):
        task, device = bad[0].tolist()
        raise PlanningError(
            f"task {task} costs {costs[task, device]} on device {device}: costs are "
            "finite and not negative"
        )
    costs.flags.writeable = False
    return costs


def _array(given: Any, what: str) -> Floats:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise PlanningError(f"{what}: not an array of numbers ({error})") from None


def _names(given: Sequence[str] | None, tasks: int) -> tuple[str, ...]:
    if given is None:
        return tuple(f"task {number}" for number in range(tasks))
    names = tuple(map(str, given))
    if len(names) != tasks:
        raise PlanningError(f"{tasks} tasks have {len(names)} names")
    return names


def _ends(edge: tuple[Any, ...], number: int, tasks: int) -> tuple[int, int]:
    if len(edge) != 3:
        raise PlanningError(
            f"edge {number} is {edge}, not (producer, consumer, transfer_time)"
        )
    try:
        ends = operator.index(edge[0]), operator.index(edge[1])
    except TypeError:
        raise PlanningError(
            f"edge {number} joins {edge[0]!r} and {edge[1]!r}, which are no numbers of "
            "tasks"
        ) from None
    for end in ends:
        if not 0 <= end < tasks:
            raise PlanningError(
                f"edge {number} joins task {ends[0]} and task {ends[1]}; there are "
                f"{tasks} tasks, from 0 on"
            )
    return ends
