"""Properties of every schedule of every policy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphs import assert_valid, described, drawn, graphs
from hypothesis import given, settings

from xpurt.mapping import Schedule, TaskGraph, plan

POLICIES = ["heft", "cpop", "peft", "eft", "exact"]
LARGE = [policy for policy in POLICIES if policy != "exact"]


@pytest.mark.parametrize("policy", LARGE)
@settings(max_examples=100)
@given(graph=graphs())
def test_a_schedule_is_valid(policy: str, graph: TaskGraph) -> None:
    schedule = plan(graph, policy)
    assert_valid(schedule)
    assert schedule.makespan == max(schedule.finish.tolist(), default=0)


@settings(max_examples=60)
@given(graph=graphs(most_tasks=5, most_devices=2))
def test_no_schedule_is_shorter_than_the_exact_one(graph: TaskGraph) -> None:
    assert_shortest(graph)


# Found by chance. In each a task that nobody reads belongs before one that waits.
@pytest.mark.parametrize(
    ("costs", "edges"),
    [
        ([[8, 1], [0, 18], [19, 6], [15, 12]], [(0, 1, 0)]),
        ([[10, 0], [0, 20], [5, 15]], [(0, 1, [[0, 2], [2, 0]])]),
        ([[7, 0], [4, 2], [5, 6], [0, 10], [3, 6]],
         [(0, 1, 20), (1, 2, [[1, 12], [4, 18]]), (0, 3, 19)]),
        ([[0, 2], [0, 0], [3, 0], [3, 2], [2, 0]],
         [(0, 2, [[2, 1], [0, 0]]), (2, 4, [[0, 1], [1, 2]])]),
    ],
)  # fmt: skip
def test_the_exact_plan_uses_the_time_before_a_task_that_waits(
    costs: list[list[float]], edges: list[Any]
) -> None:
    assert_shortest(TaskGraph(costs, edges))


def test_the_exact_plan_of_many_drawn_graphs() -> None:
    for seed in range(400):
        assert_shortest(drawn(np.random.default_rng(seed)))


def assert_shortest(graph: TaskGraph) -> None:
    exact = plan(graph, "exact")
    assert_valid(exact)
    said = described(graph)
    for policy in LARGE:
        assert exact.makespan <= plan(graph, policy).makespan, said
    assert exact.makespan <= graph.costs.sum(axis=0).min() * (1 + 1e-9), said
    assert exact.makespan == pytest.approx(_shortest(graph)), said


def _shortest(graph: TaskGraph) -> float:
    """By exhaustive search: any order of tasks, any device for each."""
    best = float("inf")

    def extend(placed: dict[int, tuple[int, float]], free_at: list[float]) -> None:
        nonlocal best
        if len(placed) == graph.tasks:
            best = min(best, max(free_at))
            return
        if max(free_at) >= best:
            return
        for task in set(range(graph.tasks)) - set(placed):
            edges = graph.edge_numbers_in(task)
            if any(graph.producers[edge] not in placed for edge in edges):
                continue
            for device in range(graph.devices):
                start = free_at[device]
                for edge in edges:
                    there, end = placed[int(graph.producers[edge])]
                    start = max(start, end + graph.transfer(edge)[there, device])
                end = float(start + graph.costs[task, device])
                later = [*free_at[:device], end, *free_at[device + 1 :]]
                extend({**placed, task: (device, end)}, later)

    extend({}, [0.0] * graph.devices)
    return best


@settings(max_examples=100)
@given(graph=graphs())
def test_the_online_policy_is_no_worse_than_the_best_device_alone(
    graph: TaskGraph,
) -> None:
    alone = graph.costs.sum(axis=0).min()
    assert plan(graph, "eft").makespan <= 1.05 * alone + 1e-9


@pytest.mark.parametrize("policy", POLICIES)
def test_ties_go_to_the_lower_task_and_device(policy: str) -> None:
    alike = TaskGraph(np.ones((3, 3)), [])
    schedule = plan(alike, policy)
    assert schedule.placement.tolist()[0] == 0
    assert sorted(schedule.placement.tolist()) == [0, 1, 2]
    if policy != "cpop":  # which puts its critical path, one task here, on one device
        assert schedule.placement.tolist() == [0, 1, 2]


def test_rounding_breaks_no_tie() -> None:
    # Tasks 0 and 2 are 0.9 from the end, but not as sums of float64.
    one, other = [0.3, 0.6, 0.4], [0.2, 0.5, 0.4]
    graph = TaskGraph([one, other, other, one], [(0, 1, 0.1), (2, 3, 0.1)])
    schedule = plan(graph)
    assert (schedule.placement[0], schedule.start[0]) == (0, 0)


def test_a_task_is_put_between_others_where_it_fits() -> None:
    # Device 0 waits for the result of device 1 while the third task could run.
    costs = [[1, 1], [9, 1], [1, 9], [1, 9]]
    graph = TaskGraph(costs, [(0, 1, 0), (1, 2, 1)])
    schedule = plan(graph, "heft")
    assert schedule.placement.tolist() == [0, 1, 0, 0]
    assert schedule.start.tolist() == [0, 1, 3, 1]


@pytest.mark.parametrize("policy", POLICIES)
def test_no_tasks_take_no_time(policy: str) -> None:
    assert plan(TaskGraph(np.zeros((0, 2)), []), policy).makespan == 0


def test_where_one_device_alone_is_best_it_is_used() -> None:
    chain = [(task, task + 1, 50) for task in range(20)]
    costs = np.tile([2.0, 1.0, 1.5], (21, 1))
    assert plan(TaskGraph(costs, chain), "eft").placement.tolist() == [1] * 21


def test_a_plot_is_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "gantt.png"
    schedule: Schedule = plan(TaskGraph([[1, 2], [2, 1]], [(0, 1, 1)], ["a", "b"]))
    schedule.plot(path)
    assert path.read_bytes().startswith(b"\x89PNG")
