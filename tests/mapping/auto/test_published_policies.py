"""Policies of other runtimes, on graphs whose schedules follow from their rules."""

from dataclasses import replace

import numpy as np
import pytest
from graphs import assert_valid, graphs
from hypothesis import given, settings

from xpurt.mapping import TaskGraph, fleets, simulate, workloads

OTHERS = ["dmda", "dmdas", "openvino", "openvino-cumulative"]


@pytest.mark.parametrize("policy", OTHERS)
@settings(max_examples=40)
@given(graph=graphs(most_tasks=15))
def test_what_happened_is_a_schedule(policy: str, graph: TaskGraph) -> None:
    done = simulate(graph, graph.devices, policy)
    assert_valid(done.schedule)
    assert done.makespan >= done.bound * (1 - 1e-9)


@pytest.mark.parametrize("policy", OTHERS)
@settings(max_examples=30)
@given(graph=graphs(most_tasks=15))
def test_everything_is_done_whatever_fails(policy: str, graph: TaskGraph) -> None:
    whole = simulate(graph, graph.devices, policy)
    failures = {
        device: whole.makespan * (device + 1) / (graph.devices + 1)
        for device in range(graph.devices - 1)
    }
    done = simulate(graph, graph.devices, policy, failures=failures)
    placement = done.schedule.placement
    assert (placement >= 0).all()
    for device, at in failures.items():
        on_it = placement == device
        assert (done.schedule.finish[on_it] <= at * (1 + 1e-9)).all()


def test_dmda_ends_each_task_first() -> None:
    # Independent: each where it is faster. Then the transfer decides.
    graph = TaskGraph([[4, 9], [9, 4], [5, 4]], [(0, 2, 2)])
    done = simulate(graph, 2, "dmda")
    assert done.schedule.placement.tolist() == [0, 1, 0]
    near = TaskGraph([[4, 9], [9, 4], [5, 4]], [(0, 2, 0.5)])
    assert simulate(near, 2, "dmda").schedule.placement.tolist() == [0, 1, 1]


def test_dmda_decides_once_the_inputs_are_computed() -> None:
    """The decision in program order gives task 2 device 1 although device 0 is free
    sooner: task 1 is predicted to keep it busy. Here task 3 is ready first."""
    graph = TaskGraph([[2, 9], [9, 6], [3, 4], [2, 2]], [(1, 2, 0)])
    done = simulate(graph, 2, "dmda")
    # Task 3 starts on device 0 at 2, behind task 0; task 2 is ready at 6.
    assert done.schedule.start.tolist() == [0, 0, 6, 2]
    assert done.schedule.placement.tolist() == [0, 1, 0, 0]


def test_dmda_runs_in_the_order_of_arrival_and_dmdas_by_priority() -> None:
    # Three tasks are ready at once; a long chain depends on the last one.
    graph = TaskGraph([[4], [4], [1], [9]], [(2, 3, 0)])
    assert simulate(graph, 1, "dmda").schedule.start.tolist() == [0, 4, 8, 9]
    assert simulate(graph, 1, "dmdas").schedule.start.tolist() == [10, 14, 0, 1]


def test_a_transfer_begins_while_the_device_is_busy() -> None:
    graph = TaskGraph([[1, 50], [50, 6], [50, 1]], [(0, 2, 4)])
    done = simulate(graph, 2, "dmda")
    assert done.schedule.start.tolist() == [0, 0, 6]


def test_openvino_takes_the_first_device_of_its_list() -> None:
    work = workloads.cholesky(4, 256)
    cpu, card = fleets.CPU, fleets.CARDS[2]
    done = simulate(work, [cpu, card, replace(card, name="other")], "openvino")
    assert (done.schedule.placement == 1).all()


def test_openvino_runs_requests_on_idle_devices() -> None:
    # Three requests of two tasks each; device 1 is slow, but idle.
    graph = TaskGraph([[2, 5]] * 6, [(0, 1, 1), (2, 3, 1), (4, 5, 1)])
    done = simulate(graph, 2, "openvino-cumulative")
    assert done.schedule.placement.tolist() == [0, 0, 1, 1, 0, 0]
    assert done.makespan == 10
    assert simulate(graph, 2, "openvino").makespan == 12


def test_a_device_without_room_gets_nothing() -> None:
    tile = 4 * 256**2
    work = workloads.cholesky(5, 256)
    small = replace(fleets.CARDS[0], memory_bytes=tile)
    done = simulate(work, [small, fleets.CARDS[1]], "dmda")
    takes = np.bincount(done.schedule.graph.consumers, minlength=len(work.tasks))
    assert (done.schedule.placement[takes > 0] == 1).all()
