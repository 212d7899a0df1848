"""Predict earliest finish time (Arabnejad and Barbosa, 2014)."""

from xpurt.mapping.auto.planning.listing import Builder, by_priority
from xpurt.mapping.auto.planning.ranks import optimistic_costs
from xpurt.mapping.auto.planning.schedule import Schedule
from xpurt.mapping.auto.planning.task_graph import TaskGraph


def peft(graph: TaskGraph) -> Schedule:
    """Tasks by their mean optimistic cost, each where its finish and the optimistic
    cost of what follows is earliest."""
    builder = Builder(graph)
    table = optimistic_costs(graph)
    for task in by_priority(graph, table.mean(axis=1)):
        builder.place(task, afterwards=table[task])
    return builder.schedule("peft")
