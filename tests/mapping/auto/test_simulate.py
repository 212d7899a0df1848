"""Runs in numbers: against the plan, with noise, without a device, with little memory."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graphs import assert_valid, graphs
from hypothesis import given, settings
from published import predict, ten_tasks

from xpurt.errors import PlanningError
from xpurt.mapping import (
    SimulatedDevice,
    TaskGraph,
    fleets,
    plan,
    simulate,
    workloads,
)

ONLINE = ["eft", "in-order", "lookahead"]
PLANS = ["heft", "cpop", "peft"]
CHOLESKY = workloads.cholesky(5, 256)


@pytest.mark.parametrize("policy", [*PLANS, "exact"])
@pytest.mark.parametrize("make", [ten_tasks, predict])
def test_a_plan_runs_as_planned(policy: str, make: Any) -> None:
    graph = make()
    done = simulate(graph, 3, policy)
    planned = plan(graph, policy)
    assert done.makespan == planned.makespan
    assert done.schedule.placement.tolist() == planned.placement.tolist()
    assert done.schedule.start.tolist() == planned.start.tolist()


@pytest.mark.parametrize("policy", ONLINE + PLANS)
@settings(max_examples=40)
@given(graph=graphs(most_tasks=15))
def test_what_happened_is_a_schedule(policy: str, graph: TaskGraph) -> None:
    done = simulate(graph, graph.devices, policy)
    assert_valid(done.schedule)
    assert done.makespan >= done.bound * (1 - 1e-9)
    assert (done.utilization <= 1 + 1e-9).all()
    if policy in PLANS:
        assert done.makespan <= plan(graph, policy).makespan * (1 + 1e-9)
    if policy in ("in-order", "lookahead"):
        assert done.makespan <= 1.05 * graph.costs.sum(axis=0).min() + 1e-9


def test_a_copy_that_is_on_its_way_is_not_there_yet() -> None:
    # Tasks 1 and 2 read one result on the other device. It is sent once, and takes 3.
    graph = TaskGraph([[1, 9], [9, 2], [9, 2]], [(0, 1, 3), (0, 2, 3)])
    for policy in ("heft", "eft"):
        done = simulate(graph, 2, policy)
        on_other = done.schedule.placement == 1
        assert (done.schedule.start[on_other] >= 4).all()
    assert done.transfers <= 1


def test_the_report_counts() -> None:
    # Two tasks at once on two devices, then one that takes both results.
    graph = TaskGraph([[4, 9], [9, 4], [2, 9]], [(0, 2, 1), (1, 2, 1)])
    done = simulate(graph, 2, "heft")
    assert done.schedule.placement.tolist() == [0, 1, 0]
    assert done.makespan == 7
    assert done.utilization.tolist() == [6 / 7, 4 / 7]
    assert done.transfers == 1
    assert done.bound == 6
    assert done.ratio == 7 / 6


def test_bytes_are_counted_for_a_workload() -> None:
    done = simulate(CHOLESKY, fleets.alike(3))
    assert done.transfers > 0
    assert done.transferred_bytes == done.transfers * 4 * 256**2


def test_devices_may_be_a_number_speeds_or_devices() -> None:
    graph = TaskGraph([[6, 6], [6, 6]], [])
    assert simulate(graph, 2, "heft").makespan == 6
    assert simulate(graph, [2.0, 1.0], "heft").makespan == 6
    fast = SimulatedDevice(speed=3.0)
    assert simulate(graph, [fast, fast], "heft").makespan == 2


def test_devices_of_one_memory_transfer_nothing() -> None:
    apart = fleets.alike(2)
    together = [replace(each, memory="host") for each in apart]
    assert simulate(CHOLESKY, apart).transfers > 0
    done = simulate(CHOLESKY, together)
    assert done.transfers == 0
    assert done.makespan < simulate(CHOLESKY, apart).makespan


@pytest.mark.parametrize("policy", ["eft", "heft"])
def test_noise_is_the_seeds(policy: str) -> None:
    machine = fleets.mixed(3)
    times = [
        simulate(CHOLESKY, machine, policy, noise=0.3, seed=seed).makespan
        for seed in (1, 1, 2)
    ]
    assert times[0] == times[1] != times[2]
    assert simulate(CHOLESKY, machine, policy).makespan not in times


@pytest.mark.parametrize("policy", ONLINE + PLANS)
def test_a_device_that_vanishes_is_done_without(policy: str) -> None:
    machine = fleets.alike(3)
    work = workloads.cholesky(8, 1024)
    whole = simulate(work, machine, policy)
    on_it = np.flatnonzero(whole.schedule.placement == 1)
    under_way = on_it[len(on_it) // 2]
    at = whole.schedule.finish[under_way] - 1.0
    done = simulate(work, machine, policy, failures={1: at})
    on_it = done.schedule.placement == 1
    assert on_it.any()
    assert (done.schedule.finish[on_it] <= at).all()
    assert done.repeated > 0
    assert whole.makespan < done.makespan < done.schedule.graph.costs[:, 0].sum()


def test_results_that_vanish_are_made_again() -> None:
    # A chain on device 0, whose last task runs elsewhere after the failure.
    graph = TaskGraph([[1, 5], [1, 5], [9, 9]], [(0, 1, 2), (1, 2, 2)])
    done = simulate(graph, 2, "heft", failures={0: 3.0})
    assert done.schedule.placement.tolist() == [1, 1, 1]
    assert done.repeated == 3
    assert done.makespan == 3 + 5 + 5 + 9


def test_a_failure_after_the_end_changes_nothing() -> None:
    whole = simulate(ten_tasks(), 3, "heft")
    assert simulate(ten_tasks(), 3, "heft", failures={0: 81.0}).makespan == (
        whole.makespan
    )


@settings(max_examples=60)
@given(graph=graphs(most_tasks=15))
def test_everything_is_done_whatever_fails(graph: TaskGraph) -> None:
    for policy in ("eft", "lookahead", "heft"):
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


def test_little_memory_costs_transfers_but_not_the_work() -> None:
    tile = 4 * 256**2
    roomy = fleets.alike(2)
    tight = [replace(each, memory_bytes=6 * tile) for each in roomy]
    whole, squeezed = simulate(CHOLESKY, roomy), simulate(CHOLESKY, tight)
    assert whole.evictions == 0
    assert squeezed.evictions > 0
    assert squeezed.makespan > whole.makespan


def test_a_task_goes_where_it_has_room() -> None:
    tile = 4 * 256**2
    small = replace(fleets.CARDS[0], memory_bytes=tile)
    done = simulate(CHOLESKY, [small, fleets.CARDS[1]])
    # What takes no result of another, and makes a tile, has room for it there.
    takes = np.bincount(done.schedule.graph.consumers, minlength=len(CHOLESKY.tasks))
    assert (done.schedule.placement[takes > 0] == 1).all()


def test_bad_simulations_are_refused() -> None:
    graph = ten_tasks()
    with pytest.raises(PlanningError, match="no devices to simulate"):
        simulate(graph, [])
    with pytest.raises(PlanningError, match="no devices to simulate"):
        simulate(graph, 0)
    with pytest.raises(PlanningError, match="costs for 3 devices, but there are 2"):
        simulate(graph, 2)
    with pytest.raises(PlanningError, match="policy 'best' is unknown"):
        simulate(graph, 3, "best")
    with pytest.raises(
        PlanningError, match="not a SimulatedDevice or a positive speed"
    ):
        simulate(graph, [1.0, 0.0, 1.0])
    with pytest.raises(PlanningError, match="wants a TaskGraph or a Workload"):
        simulate([1], 3)  # type: ignore[arg-type]
    for noise in (-1.0, float("nan")):
        with pytest.raises(PlanningError, match="noise is a finite number"):
            simulate(graph, 3, noise=noise)
    with pytest.raises(PlanningError, match="device 3 fails, but there are 3"):
        simulate(graph, 3, failures={3: 1.0})
    with pytest.raises(PlanningError, match=r"fails at -1\.0"):
        simulate(graph, 3, failures={0: -1.0})
    with pytest.raises(PlanningError, match="no device is left"):
        simulate(graph, 3, failures={0: 5.0, 1: 6.0, 2: 7.0})
    tiny = [replace(each, memory_bytes=1e5) for each in fleets.alike(2)]
    with pytest.raises(PlanningError, match="the largest device has 100,000"):
        simulate(CHOLESKY, tiny)
