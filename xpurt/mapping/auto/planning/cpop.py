"""Critical path on a processor (Topcuoglu, Hariri and Wu, 2002)."""

import numpy as np

from xpurt.mapping.auto.planning.listing import Builder, by_priority
from xpurt.mapping.auto.planning.ranks import (
    downward_ranks,
    upward_ranks,
    without_noise,
)
from xpurt.mapping.auto.planning.schedule import Schedule
from xpurt.mapping.auto.planning.task_graph import Floats, TaskGraph


def cpop(graph: TaskGraph) -> Schedule:
    """Tasks in the order of the longest path through them. Tasks of the critical path
    run on the device that runs that path fastest, others where they finish first."""
    builder = Builder(graph)
    priority = without_noise(upward_ranks(graph) + downward_ranks(graph))
    path = critical_path(graph, priority)
    fastest = int(graph.costs[path].sum(axis=0).argmin())
    on_path = set(path)
    for task in by_priority(graph, priority):
        builder.place(task, [fastest] if task in on_path else None)
    return builder.schedule("cpop")


def critical_path(graph: TaskGraph, priority: Floats) -> list[int]:
    """The path from the first task of the highest priority to a last task, always to
    the child of the highest priority; of equals, the one with the lower number."""
    if graph.tasks == 0:
        return []
    has_parents = np.isin(np.arange(graph.tasks), graph.consumers)
    first = np.flatnonzero(~has_parents).tolist()
    path = [max(first, key=lambda task: (priority[task], -task))]
    while len(children := graph.consumers[graph.edges_out(path[-1])]):
        path.append(max(children.tolist(), key=lambda task: (priority[task], -task)))
    return path
