"""Valid and invalid arguments of a task graph."""

import re
from typing import Any

import numpy as np
import pytest

from xpurt.errors import PlanningError, XpurtError
from xpurt.mapping import TaskGraph, plan

COSTS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
NAN, INF = float("nan"), float("inf")


def test_the_three_kinds_of_transfers_are_alike() -> None:
    number = TaskGraph(COSTS, [(0, 1, 7), (1, 2, 7)])
    function = TaskGraph(COSTS, [(0, 1, lambda i, j: 7), (1, 2, lambda i, j: 7)])
    array = TaskGraph(COSTS, [(0, 1, [[9, 7], [7, 9]]), (1, 2, np.full((2, 2), 7))])
    for graph in (number, function, array):
        assert graph.transfer(0).tolist() == [[0, 7], [7, 0]]
        assert graph.mean_transfers().tolist() == [7, 7]
        assert plan(graph).makespan == 9


def test_a_function_is_asked_for_each_pair_of_devices() -> None:
    graph = TaskGraph(COSTS, [(0, 1, lambda i, j: 10 * i + j)])
    assert graph.transfer(0).tolist() == [[0, 1], [10, 0]]


def test_tasks_may_be_in_any_order() -> None:
    graph = TaskGraph(COSTS, [(2, 0, 1), (0, 1, 1)])
    assert graph.order == [2, 0, 1]
    assert plan(graph, "eft").makespan == 9


def test_costs_are_copied() -> None:
    costs = np.array(COSTS)
    graph = TaskGraph(costs, [])
    costs[:] = 0
    assert graph.costs.tolist() == COSTS
    with pytest.raises(ValueError, match="read-only"):
        graph.costs[0] = 0


BAD: list[tuple[Any, Any, Any, str]] = [
    ([1, 2], [], None, "shape [tasks, devices]"),
    ([[[1]]], [], None, "shape [tasks, devices]"),
    (np.zeros((3, 0)), [], None, "one device at least"),
    ([[1, 2], [3]], [], None, "not an array of numbers"),
    ([["a"]], [], None, "not an array of numbers"),
    ([[1, -1]], [], None, "task 0 costs -1.0 on device 1"),
    ([[1, NAN]], [], None, "task 0 costs nan on device 1"),
    ([[1, INF]], [], None, "task 0 costs inf on device 1"),
    (COSTS, [(0, 1)], None, "not (producer, consumer, transfer_time)"),
    (COSTS, [(0, 3, 1)], None, "there are 3 tasks"),
    (COSTS, [(-1, 0, 1)], None, "there are 3 tasks"),
    (COSTS, [(0, 1.5, 1)], None, "no numbers of tasks"),
    (COSTS, [(0, 1, -1)], None, "edge 0 takes -1.0"),
    (COSTS, [(0, 1, NAN)], None, "edge 0 takes nan"),
    (COSTS, [(0, 1, INF)], None, "edge 0 takes inf"),
    (COSTS, [(0, 1, np.ones((3, 3)))], None, "array of 2 x 2 devices"),
    (COSTS, [(0, 1, [[0, -1], [1, 0]])], None, "negative, infinite or NaN"),
    (COSTS, [(0, 1, lambda i, j: NAN)], None, "negative, infinite or NaN"),
    (COSTS, [(0, 1, "far")], None, "not an array of numbers"),
    (COSTS, [(1, 1, 1)], None, "wait for each other: task 1 -> task 1"),
    (COSTS, [(0, 1, 1), (1, 2, 1), (2, 1, 1)], "abc", "each other: b -> c -> b"),
    (COSTS, [], ["a"], "3 tasks have 1 names"),
]


@pytest.mark.parametrize(("costs", "edges", "names", "says"), BAD)
def test_bad_input_is_refused(costs: Any, edges: Any, names: Any, says: str) -> None:
    with pytest.raises(PlanningError, match=re.escape(says)) as raised:
        TaskGraph(costs, edges, names)
    assert isinstance(raised.value, ValueError)
    assert isinstance(raised.value, XpurtError)


def test_bad_plans_are_refused() -> None:
    graph = TaskGraph(COSTS, [])
    with pytest.raises(PlanningError, match="policy 'best' is unknown; there are heft"):
        plan(graph, "best")
    with pytest.raises(PlanningError, match="wants a TaskGraph, not list"):
        plan(COSTS)  # type: ignore[arg-type]
    with pytest.raises(PlanningError, match="at most 16 tasks; found 17"):
        plan(TaskGraph(np.ones((17, 1)), []), "exact")
