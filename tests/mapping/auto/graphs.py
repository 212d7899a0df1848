"""Random task graphs, and what makes a schedule valid."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from xpurt.mapping import Schedule, TaskGraph

TIMES = st.one_of(st.just(0.0), st.integers(0, 20).map(float), st.floats(0, 100))


@st.composite
def graphs(draw: Any, most_tasks: int = 25, most_devices: int = 5) -> TaskGraph:
    """Costs that are related to each other or not, transfers of all three kinds."""
    tasks = draw(st.integers(0, most_tasks))
    devices = draw(st.integers(1, most_devices))
    costs = [[draw(TIMES) for _ in range(devices)] for _ in range(tasks)]
    edges = []
    for consumer in range(1, tasks):
        for producer in draw(st.sets(st.integers(0, consumer - 1), max_size=3)):
            edges.append((producer, consumer, draw(transfers(devices))))
    return TaskGraph(np.array(costs).reshape(tasks, devices), edges)


def transfers(devices: int) -> st.SearchStrategy[Any]:
    table = st.lists(TIMES, min_size=devices**2, max_size=devices**2).map(
        lambda times: np.array(times).reshape(devices, devices)
    )
    return st.one_of(TIMES, table, TIMES.map(lambda time: lambda i, j: time * (i + j)))


def assert_valid(schedule: Schedule, costs: np.ndarray | None = None) -> None:
    """Costs as given, no task before its inputs, one task at a time on a device."""
    graph = schedule.graph
    costs = graph.costs if costs is None else costs
    start, finish, placement = schedule.start, schedule.finish, schedule.placement
    slack = 1e-9 * (1 + schedule.makespan)
    assert (start >= 0).all()
    took = costs[np.arange(graph.tasks), placement]
    assert np.allclose(finish - start, took, atol=slack)
    for edge, (one, other) in enumerate(
        zip(graph.producers, graph.consumers, strict=True)
    ):
        moved = graph.transfer(edge)[placement[one], placement[other]]
        assert start[other] >= finish[one] + moved - slack
    for device in range(graph.devices):
        on = np.flatnonzero(placement == device)
        on = on[np.lexsort((finish[on], start[on]))]
        assert (start[on][1:] >= finish[on][:-1] - slack).all()
