"""Predict earliest finish time (Arabnejad and Barbosa, 2014)."""

from xpurt.mapping.auto.planning.listing import Builder, by_priority
from xpurt.mapping.auto.planning.ranks import optimistic_costs
from xpurt.mapping.auto.planning.schedule import Schedule
from xpurt.mapping.auto.planning.task_graph import TaskGraph


def peft(graph: TaskGraph) -> Schedule:
    """Tasks in the order of their mean optimistic cost, each where the sum of its
    finish and of its optimistic cost is smallest."""
    builder = Builder(graph)
    table = optimistic_costs(graph)
    for task in by_priority(graph, table.mean(axis=1)):
        builder.place(task, afterwards=table[task])
    return builder.schedule("peft")
