"""Work without a machine: tasks described by what they compute, not by their time."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Task:
    """A unit of work.

    flops: floating-point operations.
    bytes: memory that is read and written.
    result_bytes: the result that other tasks read.
    steps: operations that each wait for the previous one, as in a factorization's
        panel.
    """

    name: str
    flops: float
    bytes: float
    result_bytes: float
    steps: int = 0


@dataclass(eq=False)
class Workload:
    """Tasks in program order, and edges (producer, consumer, bytes)."""

    name: str
    tasks: list[Task] = field(default_factory=list)
    edges: list[tuple[int, int, float]] = field(default_factory=list)
    _writers: dict[Hashable, int] = field(default_factory=dict, repr=False)

    def add(
        self,
        task: Task,
        reads: Iterable[Hashable] = (),
        writes: Iterable[Hashable] = (),
    ) -> int:
        """Appends a task that reads and writes blocks of data. A block that is read
        has its writer's `result_bytes`; one without a writer is on every device."""
        number = len(self.tasks)
        self.tasks.append(task)
        found = {self._writers[each] for each in reads if each in self._writers}
        self.edges += [
            (writer, number, self.tasks[writer].result_bytes)
            for writer in sorted(found)
        ]
        for each in writes:
            self._writers[each] = number
        return number


def repeated(work: Workload, copies: int) -> Workload:
    """Independent copies of the same work, in turns: as many requests at once."""
    made = Workload(f"{copies} x {work.name}")
    for task in work.tasks:
        made.tasks += [task] * copies
    made.edges = [
        (producer * copies + copy, consumer * copies + copy, size)
        for producer, consumer, size in work.edges
        for copy in range(copies)
    ]
    return made
