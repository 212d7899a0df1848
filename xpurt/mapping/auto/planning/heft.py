"""Heterogeneous earliest finish time (Topcuoglu, Hariri and Wu, 2002)."""

from xpurt.mapping.auto.planning.listing import Builder, by_priority
from xpurt.mapping.auto.planning.ranks import upward_ranks
from xpurt.mapping.auto.planning.schedule import Schedule
from xpurt.mapping.auto.planning.task_graph import TaskGraph


def heft(graph: TaskGraph) -> Schedule:
    """Tasks in the order of their upward rank, each where it finishes first."""
    builder = Builder(graph)
    for task in by_priority(graph, upward_ranks(graph)):
        builder.place(task)
    return builder.schedule("heft")
