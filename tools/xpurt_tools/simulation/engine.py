"""Discrete events: tasks start and end, results arrive, devices fail."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

from xpurt.errors import PlanningError
from xpurt.mapping.auto.planning import TaskGraph
from xpurt_tools.simulation.residency import Piece, Residency

NOWHERE = -1
Turn = tuple[float, int]


class State(Enum):
    unplaced = 0
    queued = 1
    running = 2
    done = 3


class Strategy(Protocol):
    """Chooses devices for tasks."""

    # Whether a device waits for the next task of its queue. If False, a task that is
    # ready overtakes tasks that wait.
    in_order: bool

    def offer(self, engine: "Engine") -> None:
        """Places any number of tasks; called at the beginning and after each event."""

    def finished(self, engine: "Engine", task: int) -> None: ...
    def failed(self, engine: "Engine", device: int, again: list[int]) -> None:
        """A device has failed; these tasks are unplaced, in program order."""


@dataclass
class Device:
    queue: dict[int, Turn] = field(default_factory=dict)
    turns: list[tuple[Turn, int]] = field(default_factory=list)  # heap of the queue
    ready: list[tuple[Turn, int]] = field(default_factory=list)  # heap
    running: int | None = None
    alive: bool = True


class Engine:
    """Runs a graph. A transfer begins when its result is there and its consumer is
    placed. Transfers slow down neither each other nor the devices."""

    def __init__(
        self,
        graph: TaskGraph,
        strategy: Strategy,
        duration: Callable[[int, int], float],
        residency: Residency,
        size_bytes: Callable[[int], float],
        failures: dict[int, float],
    ) -> None:
        self.graph, self.strategy = graph, strategy
        self.duration, self.residency, self.size_bytes = duration, residency, size_bytes
        self.in_order = strategy.in_order
        self.now = 0.0
        self.devices = [Device() for _ in range(graph.devices)]
        self.state = [State.unplaced] * graph.tasks
        self.placement = np.full(graph.tasks, NOWHERE, dtype=np.intp)
        self.start, self.finish = np.zeros(graph.tasks), np.zeros(graph.tasks)
        self.busy = np.zeros(graph.devices)
        self.transfers, self.transferred_bytes, self.repeated = 0, 0.0, 0
        self._placed = 0
        self._missing = [0] * graph.tasks  # parents that are not done
        self._arrives = [0.0] * graph.tasks  # the latest arrival of an input so far
        self._lands: dict[tuple[Piece, int], float] = {}  # when a device has a copy
        # Events of a task from before it was taken back have an older life number.
        self._life = [0] * graph.tasks
        self._children = [graph.children(task) for task in range(graph.tasks)]
        self._needed = [len(children) for children in self._children]
        self._left = graph.tasks
        self._events: list[tuple[float, int, str, int, int]] = []
        self._pushed = 0
        self._idle: set[int] = set()  # devices that may start a task
        for device, at in failures.items():
            self._push(at, "fail", device, 0)

    def run(self) -> None:
        """Runs until all tasks are done. Raises PlanningError if no device is left."""
        self.strategy.offer(self)
        while self._left:
            if not self._events:
                self._wait_no_more()
            self.now, _, kind, which, life = heapq.heappop(self._events)
            if kind == "fail":
                self._fail(which)
                self.strategy.offer(self)
            elif self._life[which] == life:
                if kind == "ready":
                    self._ready(which)
                else:
                    self._finish(which)
                self.strategy.offer(self)
            # A device chooses among all tasks that are ready at this moment.
            if not self._events or self._events[0][0] > self.now:
                self._start_idle()

    def place(self, task: int, device: int, turn: float = 0.0) -> None:
        """Puts a task into a device's queue, behind those of a lower or equal `turn`.
        Its parents are placed."""
        assert self.state[task] is State.unplaced
        assert self.devices[device].alive
        self.placement[task] = device
        self.state[task] = State.queued
        self._placed += 1
        on = self.devices[device]
        on.queue[task] = (turn, self._placed)
        heapq.heappush(on.turns, (on.queue[task], task))
        self._await(task)

    def is_done(self, task: int) -> bool:
        return self.state[task] is State.done

    def is_unplaced(self, task: int) -> bool:
        return self.state[task] is State.unplaced

    def arrival(self, edge: int, device: int) -> float:
        """The time that a finished parent's result takes to a device from now on."""
        piece = self.graph.piece(edge)
        if self.residency.is_on(piece, device):
            return self._on_its_way(piece, device)
        times = self.graph.transfer(edge)
        return min(
            self._on_its_way(piece, there) + float(times[there, device])
            for there in self._holders(edge)
        )

    def _on_its_way(self, piece: Piece, device: int) -> float:
        """The time until a copy that a device has, or is being sent, is there."""
        return max(self._lands.get((piece, device), 0.0) - self.now, 0.0)

    def _holders(self, edge: int) -> list[int]:
        return self.residency.where(self.graph.piece(edge)) or [
            int(self.placement[self.graph.producers[edge]])
        ]

    def _await(self, task: int) -> None:
        """Requests a queued task's inputs."""
        self._missing[task] = 0
        self._arrives[task] = self.now
        for edge in self.graph.edge_numbers_in(task):
            if self.is_done(int(self.graph.producers[edge])):
                self._fetch(edge, task)
            else:
                self._missing[task] += 1
        self._when_complete(task)

    def _fetch(self, edge: int, task: int) -> None:
        device = int(self.placement[task])
        takes = self.arrival(edge, device)
        piece = self.graph.piece(edge)
        if not self.residency.is_on(piece, device):
            self.transfers += takes > 0
            self.transferred_bytes += self.size_bytes(edge) if takes > 0 else 0.0
            self._lands[piece, device] = self.now + takes
        self.residency.put(piece, device, self.size_bytes(edge))
        self._arrives[task] = max(self._arrives[task], self.now + takes)

    def _when_complete(self, task: int) -> None:
        if self._missing[task] == 0:
            self._push(self._arrives[task], "ready", task, self._life[task])

    def _ready(self, task: int) -> None:
        device = int(self.placement[task])
        on = self.devices[device]
        heapq.heappush(on.ready, (on.queue[task], task))
        self._idle.add(device)

    def _start_idle(self) -> None:
        for device in sorted(self._idle):
            self._start_next(device)
        self._idle.clear()

    def _start_next(self, device: int) -> None:
        on = self.devices[device]
        if on.running is not None or not on.ready or not on.alive:
            return
        if self.in_order and on.ready[0] != on.turns[0]:
            return
        _, task = heapq.heappop(on.ready)
        del on.queue[task]
        while on.turns and on.queue.get(on.turns[0][1]) != on.turns[0][0]:
            heapq.heappop(on.turns)
        on.running = task
        self.state[task] = State.running
        self.start[task] = self.now
        takes = self.duration(task, device) + self._brought_back(task)
        self._push(self.now + takes, "finish", task, self._life[task])

    def _brought_back(self, task: int) -> float:
        """The time to bring back inputs that were evicted while the task was queued."""
        self._arrives[task] = self.now
        for edge in self.graph.edge_numbers_in(task):
            self._fetch(edge, task)
        return self._arrives[task] - self.now

    def _finish(self, task: int) -> None:
        device = int(self.placement[task])
        self.devices[device].running = None
        self.state[task] = State.done
        self.finish[task] = self.now
        self.busy[device] += self.now - self.start[task]
        self._left -= 1
        edges = self.graph.edges_out(task).tolist()
        for edge in edges:
            piece = self.graph.piece(edge)
            self.residency.put(piece, device, self.size_bytes(edge))
            self._lands[piece, device] = self.now
        self._release_inputs(task)
        self.strategy.finished(self, task)
        for edge in edges:
            child = int(self.graph.consumers[edge])
            if self.state[child] is State.queued:
                self._fetch(edge, child)
                self._missing[child] -= 1
                self._when_complete(child)
        self._idle.add(device)

    def _release_inputs(self, task: int) -> None:
        for edge in self.graph.edge_numbers_in(task):
            parent = int(self.graph.producers[edge])
            self._needed[parent] -= 1
            if self._needed[parent] == 0:
                for each in self.graph.edges_out(parent).tolist():
                    self.residency.forget(self.graph.piece(each))

    def _fail(self, device: int) -> None:
        """Removes a device. The tasks that it ran and had queued are unplaced. Results
        that it alone held are computed again if they are still needed."""
        gone = self.devices[device]
        if not gone.alive:
            return
        gone.alive = False
        self.in_order = False  # repeated tasks come behind those that wait for them
        again = set(gone.queue)
        if gone.running is not None:
            again.add(gone.running)
            self.busy[device] += self.now - self.start[gone.running]
            self.repeated += 1
        gone.queue.clear()
        gone.turns.clear()
        gone.ready.clear()
        gone.running = None
        self.residency.lose(device)
        for task in again:
            self.state[task] = State.unplaced
        for task in reversed(self.graph.order):
            if self.is_done(task) and self._is_lost(task):
                again.add(task)
                self.state[task] = State.unplaced
                self._left += 1
                self.repeated += 1
                self._needed_again(task)
        for task in again:
            self.placement[task] = NOWHERE
            self._life[task] += 1
        self._await_all_again()
        self.strategy.failed(self, device, [t for t in self.graph.order if t in again])

    def _is_lost(self, task: int) -> bool:
        """Whether a task that is not running yet needs a result that no device has."""
        return any(
            self.state[int(self.graph.consumers[edge])]
            in (State.unplaced, State.queued)
            and not self.residency.where(self.graph.piece(edge))
            for edge in self.graph.edges_out(task).tolist()
        )

    def _needed_again(self, task: int) -> None:
        for parent in self.graph.producers[self.graph.edges_in(task)].tolist():
            self._needed[parent] += 1

    def _await_all_again(self) -> None:
        """Queued tasks count again the inputs that they wait for."""
        for on in self.devices:
            on.ready.clear()
            for task in on.queue:
                self._life[task] += 1
                self._await(task)

    def _wait_no_more(self) -> None:
        """Lets tasks overtake: no event is left, since queues wait for each other, or
        no device is left. Raises PlanningError if that starts no task."""
        self.in_order = False
        for device in range(len(self.devices)):
            self._start_next(device)
        if not self._events:
            raise PlanningError("no device is left that could go on")

    def _push(self, at: float, kind: str, which: int, life: int) -> None:
        self._pushed += 1
        heapq.heappush(self._events, (at, self._pushed, kind, which, life))
