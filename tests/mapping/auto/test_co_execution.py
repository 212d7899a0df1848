"""Ops that simulated devices compute together."""

from dataclasses import replace
from typing import Any

import pytest

from xpurt.errors import PlanningError
from xpurt.mapping import co_execute, divided_ops, fleets
from xpurt.mapping import product_forms as forms
from xpurt_tools.commands.co_execution_table import (
    APART,
    MACHINES,
    ONE_MEMORY,
    WORK,
    fleet_work,
    times_of,
)

MIDDLE = fleets.CARDS[1]


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("machine", MACHINES)
def test_all_kinds_of_work_reach_their_limit(work: str, machine: str) -> None:
    limit = ONE_MEMORY if machine.startswith("one memory") else APART
    if (work, machine) == ("gradient of a weight", "four alike"):
        limit = 0.86  # three additions of 4 MB, and the copies before them
    assert co_execute(WORK[work], MACHINES[machine]).efficiency >= limit


@pytest.mark.parametrize(
    ("fleet", "work"),
    [
        (fleets.alike, "product"),
        (fleets.alike, "convolution"),
        (fleets.mixed, "softmax"),
        (fleets.mixed, "pointwise chain"),
        (fleets.lopsided, "product"),
        (fleets.lopsided, "pointwise chain"),
    ],
)
def test_fleets_reach_it_too(fleet: Any, work: str) -> None:
    """Without noise: the last of 64 devices is late by more than two deviations."""
    for count in (8, 64):
        machine = fleet(count)
        chain = fleet_work(times_of(machine))[work]
        assert co_execute(chain, machine, noise=0.0).efficiency >= 0.92


def test_without_noise_a_long_op_is_divided_by_the_speeds() -> None:
    op = divided_ops.product(8192, 8192, 8192)
    half = replace(MIDDLE, speed=0.5)
    done = co_execute(op, [MIDDLE, half], noise=0.0, prediction_error=1.0)
    assert done.proportions[0] == pytest.approx((2 / 3, 1 / 3), abs=0.02)
    assert done.efficiency == pytest.approx(1, abs=0.03)
    assert done.moved_bytes == 0


def test_what_does_not_pay_is_done_by_one_device() -> None:
    tiny = divided_ops.pointwise(1 << 10)
    done = co_execute(tiny, [MIDDLE, MIDDLE])
    assert done.proportions == ((),)
    assert done.together == pytest.approx(done.alone[0], rel=0.1)


def test_a_chain_keeps_its_boundary() -> None:
    chain = WORK["product, pointwise, softmax"]
    kept = co_execute(chain, MACHINES["large, middle"])
    apart = co_execute(chain, MACHINES["large, middle"], shared_boundary=False)
    # In some rounds the boundary moves by a row or two.
    assert kept.moved_bytes < apart.moved_bytes / 100
    assert kept.together < apart.together


def test_operands_that_are_fresh_in_each_call_are_not_copied_in_vain() -> None:
    fresh = replace(divided_ops.product(2048, 2048, 2048), fresh_whole=True)
    slow_link = replace(MIDDLE, link_bytes_per_us=1e3)
    done = co_execute(fresh, [slow_link, slow_link])
    assert done.together <= 1.1 * done.alone[0]


def test_a_memory_that_two_devices_fill_is_a_limit() -> None:
    work = [divided_ops.pointwise(16 << 20)]
    full = [
        replace(each, shared_bytes_per_us=each.bytes_per_us)
        for each in fleets.one_memory(1, 1)
    ]
    assert co_execute(work, full).efficiency < 0.55
    assert co_execute(work, fleets.one_memory(1, 1)).efficiency > 0.95


def test_partial_sums_limit_the_number_of_devices() -> None:
    """Home adds them one after the other."""
    op = divided_ops.product_gradient(1024, 1024, 65_536)
    many = co_execute(op, fleets.alike(64), noise=0.0)
    few = co_execute(op, fleets.alike(16), noise=0.0)
    assert many.together < 1.05 * few.together
    assert 1 < sum(part > 0 for part in many.proportions[0]) < 64


def test_bad_requests_are_refused() -> None:
    with pytest.raises(PlanningError, match="an op at least, and two devices"):
        co_execute([], [MIDDLE, MIDDLE])
    with pytest.raises(PlanningError, match="two devices"):
        co_execute(divided_ops.pointwise(64), [MIDDLE])


def test_the_form_of_a_product_depends_on_what_moves() -> None:
    def best(*sizes: int, count: int, **where: bool) -> str:
        us = forms.product_forms(*sizes, MIDDLE, count, **where)
        return min(us, key=us.__getitem__)

    # With two devices a grid has one column: blocks are rows.
    two = forms.product_forms(8192, 8192, 8192, MIDDLE, 2)
    assert two["blocks"] == two["rows"]
    assert best(8192, 8192, 8192, count=16) == "blocks"
    # A long inner dimension, whose rows the devices have.
    assert best(1024, 1024, 65_536, count=2, by_inner_rows=True) == "inner"
    assert best(2048, 2048, 2048, count=2, resident=True) == "rows"
    assert best(64, 64, 64, count=4) == "one device"
