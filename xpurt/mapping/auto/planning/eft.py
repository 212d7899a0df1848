"""Earliest finish as the eager scheduler has it: tasks in program order, each put at
the end of a queue by the extension's own decision."""

import numpy as np

from xpurt import _C
from xpurt.mapping.auto.planning.schedule import Schedule
from xpurt.mapping.auto.planning.task_graph import Integers, TaskGraph


def eft(graph: TaskGraph) -> Schedule:
    """Where each op would go if the host submitted all of them at once."""
    policy = _C.OnlinePolicy(graph.devices)
    placement: Integers = np.zeros(graph.tasks, dtype=np.intp)
    start = np.zeros(graph.tasks)
    finish = np.zeros(graph.tasks)
    free_at = np.zeros(graph.devices)
    for task in graph.order:
        ready = graph.ready(task, placement, finish)
        leave = graph.leave(task, policy.best_alone)
        device = policy.choose(free_at, ready, graph.costs[task], leave)
        placement[task] = device
        start[task] = max(free_at[device], ready[device])
        finish[task] = free_at[device] = start[task] + graph.costs[task, device]
    return Schedule("eft", graph, placement, start, finish)
