"""Lower bounds of the makespan of any schedule."""

import numpy as np

from xpurt.mapping.auto.planning import TaskGraph, device_prices


def lower_bound(graph: TaskGraph) -> float:
    """The larger of the critical path and the area; 0 without tasks."""
    return max(critical_path(graph), area(graph))


def critical_path(graph: TaskGraph) -> float:
    """The longest path, with each task where it is fastest, and without transfers."""
    least = graph.costs.min(axis=1)
    end = np.zeros(graph.tasks)
    for task in graph.order:
        parents = graph.producers[graph.edges_in(task)]
        end[task] = end[parents].max(initial=0.0) + least[task]
    return float(end.max(initial=0.0))


def area(graph: TaskGraph) -> float:
    """The makespan if all devices were always busy with tasks that can be cut."""
    return float((graph.costs * device_prices(graph)).min(axis=1).sum())
