"""The value of time on each device."""

import numpy as np

from xpurt.mapping.auto.planning.task_graph import Floats, TaskGraph

STEPS = 200


def device_prices(graph: TaskGraph) -> Floats:
    """Prices that add up to 1. The sum of each task's smallest cost times price is a
    lower bound of the makespan: the dual of the linear program in which tasks can be
    cut, and run on several devices at once.

    The best prices are approached by multiplicative weights (Arora, Hazan and Kale,
    2012); any prices give a bound.
    """
    price: Floats = 1 / np.maximum(graph.costs.sum(axis=0), 1e-300)
    price /= price.sum()
    best, found = -1.0, price
    tasks = np.arange(graph.tasks)
    for step in range(STEPS if graph.tasks else 0):
        priced = graph.costs * price
        cheapest = priced.argmin(axis=1)
        bound = float(priced[tasks, cheapest].sum())
        if bound > best:
            best, found = bound, price
        chosen = graph.costs[tasks, cheapest]
        load = np.bincount(cheapest, weights=chosen, minlength=graph.devices)
        if load.sum() == 0:
            break
        # The price of a device with too much work rises.
        price = price * (1 + 0.5 / np.sqrt(step + 1) * (load / load.sum() - price))
        price /= price.sum()
    return found
