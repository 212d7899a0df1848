"""Policies of other runtimes, reimplemented from their publications, to compare with.

StarPU's `dmda` and `dmdas`: Augonnet, Thibault, Namyst and Wacrenier, "StarPU: a unified
platform for task scheduling on heterogeneous multicore architectures" (2011), and the
list of schedulers in StarPU's handbook. OpenVINO's AUTO: the page "Automatic Device
Selection" of its documentation.
"""

import heapq

import numpy as np

from xpurt.errors import PlanningError
from xpurt.mapping.auto.planning import TaskGraph, upward_ranks
from xpurt_tools.simulation.engine import Engine


class Dmda:
    """Deque model, data aware. A task is given to a device once all of its inputs are
    computed, to the one that ends it first with the transfers; these begin at once.

    by_priority: `dmdas`. A device runs the task of the highest priority first, and a
        task whose inputs have arrived before one that waits for them. As in StarPU, the
        predicted end takes no account of that: the variant that does is `dmdasd`. The
        priorities are upward ranks: StarPU takes them from the program, and published
        ones are computed like these.
    """

    def __init__(
        self,
        graph: TaskGraph,
        fits: np.ndarray | None = None,
        by_priority: bool = False,
    ) -> None:
        self.in_order = not by_priority
        self.graph = graph
        self.costs = (
            graph.costs if fits is None else np.where(fits, graph.costs, np.inf)
        )
        self.alive = np.ones(graph.devices, dtype=bool)
        rank = upward_ranks(graph) if by_priority else np.zeros(graph.tasks)
        self.turn: list[float] = (-rank).tolist()
        self.position = {task: place for place, task in enumerate(graph.order)}
        self.children = [graph.children(task) for task in range(graph.tasks)]
        self.queued_until = np.zeros(graph.devices)
        self.ends = np.zeros(graph.tasks)
        self._count_inputs(None)

    def offer(self, engine: Engine) -> None:
        if self.has_lost:
            self._count_inputs(engine)
        while self.ready and self.alive.any():
            _, _, task = heapq.heappop(self.ready)
            device = self._earliest(engine, task)
            self.ends[task] = self.queued_until[device] = self._end(
                engine, task, device
            )
            engine.place(task, device, self.turn[task])

    def finished(self, engine: Engine, task: int) -> None:
        device = int(engine.placement[task])
        # The prediction is corrected by the time that the task has really taken.
        late = engine.now - self.ends[task]
        queue = engine.devices[device].queue
        self.queued_until[device] = (
            max(engine.now, self.queued_until[device] + late) if queue else engine.now
        )
        for other in queue:
            self.ends[other] += late
        if self.has_lost:
            return
        for child in self.children[task]:
            self.waits[child] -= 1
            if self.waits[child] == 0 and engine.is_unplaced(child):
                self._push(child)

    def failed(self, engine: Engine, device: int, again: list[int]) -> None:
        self.alive[device] = False
        self.has_lost = True  # what was done may have to be done again

    def _count_inputs(self, engine: Engine | None) -> None:
        """Counts the inputs that tasks wait for, at the beginning or again."""
        graph = self.graph
        self.has_lost = False
        self.waits = [0] * graph.tasks
        self.ready: list[tuple[float, int, int]] = []
        for task in graph.order:
            self.waits[task] = sum(
                engine is None or not engine.is_done(int(parent))
                for parent in graph.producers[graph.edges_in(task)]
            )
            is_new = engine is None or engine.is_unplaced(task)
            if is_new and self.waits[task] == 0:
                self._push(task)

    def _push(self, task: int) -> None:
        heapq.heappush(self.ready, (self.turn[task], self.position[task], task))

    def _earliest(self, engine: Engine, task: int) -> int:
        ends = [
            self._end(engine, task, device) if self.alive[device] else np.inf
            for device in range(self.graph.devices)
        ]
        device = int(np.argmin(ends))
        if not np.isfinite(ends[device]):
            raise PlanningError(f"no device is left that has room for task {task}")
        return device

    def _end(self, engine: Engine, task: int, device: int) -> float:
        """The predicted end. Transfers go on while the device works on other tasks."""
        cost = float(self.costs[task, device])
        if not np.isfinite(cost):
            return float("inf")
        arrives = engine.now + max(
            (engine.arrival(edge, device) for edge in self.graph.edge_numbers_in(task)),
            default=0.0,
        )
        return max(engine.now, float(self.queued_until[device]), arrives) + cost


class OpenVino:
    """The first device of a list of priorities runs the program: discrete GPUs before
    integrated ones before the CPU; their speeds do not matter.

    cumulative: the mode of cumulative throughput. Parts of the program that share no
        data are requests; a request waits for an idle device, and the first idle one
        in the list runs it as a whole.
    """

    in_order = True

    def __init__(
        self, graph: TaskGraph, priorities: list[int], cumulative: bool = False
    ) -> None:
        self.graph = graph
        self.priorities = priorities
        self.cumulative = cumulative
        self.requests = _requests(graph) if cumulative else [list(graph.order)]
        self.alive = np.ones(graph.devices, dtype=bool)
        self.begun = 0  # requests
        self.left = [0] * graph.devices  # tasks of the request on a device
        self.again: list[int] = []

    def offer(self, engine: Engine) -> None:
        if self.again:
            first = next((d for d in self.priorities if self.alive[d]), None)
            if first is None:
                return
            for task in self.again:
                self._place(engine, task, first)
            self.again = []
        while self.begun < len(self.requests):
            idle = (d for d in self.priorities if self.alive[d] and not self.left[d])
            device = next(idle, None)
            if device is None:
                return
            for task in self.requests[self.begun]:
                self._place(engine, task, device)
            self.begun += 1

    def finished(self, engine: Engine, task: int) -> None:
        self.left[int(engine.placement[task])] -= 1

    def failed(self, engine: Engine, device: int, again: list[int]) -> None:
        self.alive[device] = False
        begun = {task for each in self.requests[: self.begun] for task in each}
        self.again = [task for task in again if task in begun]
        self.left[device] = 0

    def _place(self, engine: Engine, task: int, device: int) -> None:
        engine.place(task, device)
        self.left[device] += 1


def _requests(graph: TaskGraph) -> list[list[int]]:
    """The connected parts of the graph, by their first tasks."""
    root = list(range(graph.tasks))

    def find(task: int) -> int:
        while root[task] != task:
            root[task] = root[root[task]]
            task = root[task]
        return task

    for one, other in zip(
        graph.producers.tolist(), graph.consumers.tolist(), strict=True
    ):
        root[find(other)] = find(one)
    parts: dict[int, list[int]] = {}
    for task in graph.order:
        parts.setdefault(find(task), []).append(task)
    return list(parts.values())
