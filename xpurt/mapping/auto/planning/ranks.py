"""Priorities of tasks in a graph that is known as a whole.

Costs are means over devices, transfers means over ordered pairs of different devices.
"""

import numpy as np

from xpurt.mapping.auto.planning.task_graph import Floats, TaskGraph


def without_noise(times: Floats) -> Floats:
    """Whole numbers in the same order; equal for times that differ by rounding errors
    alone. Means divide by three, for example, and would break ties."""
    unit = max(float(times.max(initial=0.0)), 1e-300) * 1e-10
    steps: Floats = np.rint(times / unit)
    return steps


def upward_ranks(graph: TaskGraph) -> Floats:
    """The length of the longest path from a task's start to the end (Topcuoglu, Hariri
    and Wu, 2002)."""
    transfer = graph.mean_transfers()
    rank: Floats = graph.costs.mean(axis=1)
    for task in reversed(graph.order):
        edges = graph.edges_out(task)
        if len(edges):
            rank[task] += (transfer[edges] + rank[graph.consumers[edges]]).max()
    return rank


def downward_ranks(graph: TaskGraph) -> Floats:
    """The length of the longest path from the beginning to a task's start (same
    source)."""
    mean = graph.costs.mean(axis=1)
    transfer = graph.mean_transfers()
    rank = np.zeros(graph.tasks)
    for task in graph.order:
        edges = graph.edges_in(task)
        if edges.start < edges.stop:
            parents = graph.producers[edges]
            rank[task] = (rank[parents] + mean[parents] + transfer[edges]).max()
    return rank


def optimistic_costs(graph: TaskGraph) -> Floats:
    """The optimistic cost table [tasks, devices] of Arabnejad and Barbosa (2014): the
    time from a task's end to that of the graph, if the task runs on the device, all
    later tasks run where they are fastest, and devices are never busy."""
    transfer = graph.mean_transfers()
    table = np.zeros(graph.costs.shape)
    for task in reversed(graph.order):
        edges = graph.edges_out(task)
        if len(edges):
            children = graph.consumers[edges]
            here = table[children] + graph.costs[children]
            elsewhere = here.min(axis=1) + transfer[edges]
            table[task] = np.minimum(here, elsewhere[:, None]).max(axis=0)
    return table
