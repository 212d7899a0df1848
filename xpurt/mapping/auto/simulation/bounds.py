"""What no schedule can beat."""

import numpy as np

from xpurt.mapping.auto.planning import TaskGraph, device_prices


def lower_bound(graph: TaskGraph) -> float:
    """The greater one of the critical path and the area; 0 for no tasks."""
    return max(critical_path(graph), area(graph))


def critical_path(graph: TaskGraph) -> float:
    """The longest way, each task where it is fastest, without transfers."""
    least = graph.costs.min(axis=1)
    end = np.zeros(graph.tasks)
    for task in graph.order:
        parents = graph.producers[graph.edges_in(task)]
        end[task] = end[parents].max(initial=0.0) + least[task]
    return float(end.max(initial=0.0))


def area(graph: TaskGraph) -> float:
    """All devices busy all the time with tasks that can be cut."""
    return float((graph.costs * device_prices(graph)).min(axis=1).sum())
