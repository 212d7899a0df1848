"""Earliest finish as the eager scheduler has it: ops in program order, each sent on by
the extension's own decision as soon as it comes. On a device an op that is ready
overtakes those that still wait for their inputs."""

import numpy as np

from xpurt import _C
from xpurt.mapping.auto.planning.schedule import Schedule
from xpurt.mapping.auto.planning.task_graph import Integers, TaskGraph
from xpurt.mapping.auto.planning.timeline import Timeline

# Of what the best device alone takes. A program runs for long beside a transfer; a
# graph alone may not.
ALLOWANCE = 0.02


def eft(graph: TaskGraph) -> Schedule:
    """Where each op would go if the host submitted all of them at once."""
    policy = online_policy(graph)
    placement: Integers = np.zeros(graph.tasks, dtype=np.intp)
    start = np.zeros(graph.tasks)
    finish = np.zeros(graph.tasks)
    timelines = [Timeline() for _ in range(graph.devices)]
    for task in graph.order:
        ready = graph.ready(task, placement, finish)
        cost = graph.costs[task]
        begins = [
            each.earliest(*times)
            for each, *times in zip(
                timelines, ready.tolist(), cost.tolist(), strict=True
            )
        ]
        leave = graph.leave(task, policy.best_alone)
        device = policy.choose(begins, ready, cost, leave)
        placement[task] = device
        start[task] = begins[device]
        finish[task] = begins[device] + cost[device]
        timelines[device].take(begins[device], finish[task])
    return Schedule("eft", graph, placement, start, finish)


def online_policy(graph: TaskGraph) -> _C.OnlinePolicy:
    """A policy that knows nothing of the graph but how long a program it is."""
    alone = graph.costs.sum(axis=0).min()
    return _C.OnlinePolicy(graph.devices, ALLOWANCE * float(alone))
