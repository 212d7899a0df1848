"""Earliest finish time, as in the eager scheduler: ops come in program order, and the
extension's own decision sends each to a device at once. On a device, an op that is
ready overtakes those that still wait for their inputs."""

import numpy as np

from xpurt import _C
from xpurt.mapping.auto.planning.schedule import Schedule
from xpurt.mapping.auto.planning.task_graph import Integers, TaskGraph
from xpurt.mapping.auto.planning.timeline import Timeline

ROUNDS = 20  # of the loop, run before


def eft(graph: TaskGraph) -> Schedule:
    """The device of each op if the host submitted all of them at once."""
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
    """A policy for which the graph is the next round of a long loop: it has learned the
    costs, and which device is best alone."""
    policy = _C.OnlinePolicy(graph.devices)
    policy.remember((ROUNDS * graph.costs.sum(axis=0)).tolist())
    return policy
