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


def drawn(draw: np.random.Generator) -> TaskGraph:
    """As hypothesis draws too rarely: small, with times of which many are 0 or equal.
    Tables of transfers have diagonals, which do not count."""
    tasks, devices = int(draw.integers(2, 6)), 2
    most = int(draw.choice([3, 20, 1000]))

    def times(*shape: int) -> np.ndarray:
        return draw.integers(0, most, shape) * (draw.random(shape) > 0.3).astype(float)

    costs = times(tasks, devices)
    if draw.random() < 0.3:
        costs[:] = costs[:, :1]  # devices of one kind
    edges: list[Any] = [
        (one, other, times(devices, devices) if draw.random() < 0.5 else times(1)[0])
        for other in range(tasks)
        for one in range(other)
        if draw.random() < 0.3
    ]
    return TaskGraph(costs, edges)


def described(graph: TaskGraph) -> str:
    """Costs and edges as `TaskGraph` takes them, for the message of a failure."""
    edges = [
        (int(one), int(other), graph.transfer(edge).tolist())
        for edge, (one, other) in enumerate(
            zip(graph.producers, graph.consumers, strict=True)
        )
    ]
    return f"costs = {graph.costs.tolist()}\nedges = {edges}"


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
