"""Tasks in an order in which each comes after all tasks that it waits for."""

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any


def parents_first(
    tasks: Collection[int],
    children: Callable[[int], Sequence[int]],
    turn: Callable[[int], Any],
) -> Iterator[int]:
    """Tasks in the order of `turn`, then of their number, among those whose parents
    were yielded (Kahn, 1962, with a heap). Tasks on or behind a cycle are missing.

    children: of a task, among `tasks`; once for each edge.
    """
    missing = dict.fromkeys(tasks, 0)
    for task in tasks:
        for child in children(task):
            missing[child] += 1
    free = [(turn(task), task) for task, count in missing.items() if count == 0]
    heapq.heapify(free)
    while free:
        _, task = heapq.heappop(free)
        yield task
        for child in children(task):
            missing[child] -= 1
            if missing[child] == 0:
                heapq.heappush(free, (turn(child), child))
