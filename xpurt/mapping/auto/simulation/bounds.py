"""What no schedule can beat."""

import numpy as np

from xpurt.mapping.auto.planning import TaskGraph

STEPS = 200


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
    """All devices busy all the time with tasks that can be cut: a bound on the linear
    program by its dual.

    For prices of the devices that add up to 1, no assignment is shorter than the sum of
    each task's least cost times price. The best prices are approached by multiplicative
    weights (Arora, Hazan and Kale, 2012); any prices give a bound.
    """
    if graph.tasks == 0:
        return 0.0
    price = 1 / np.maximum(graph.costs.sum(axis=0), 1e-300)
    price /= price.sum()
    best = 0.0
    for step in range(STEPS):
        priced = graph.costs * price
        cheapest = priced.argmin(axis=1)
        best = max(best, float(priced.min(axis=1).sum()))
        chosen = graph.costs[np.arange(graph.tasks), cheapest]
        load = np.bincount(cheapest, weights=chosen, minlength=graph.devices)
        if load.sum() == 0:
            break
        # A device that too much goes to gets dearer.
        price = price * (1 + 0.5 / np.sqrt(step + 1) * (load / load.sum() - price))
        price /= price.sum()
    return best
