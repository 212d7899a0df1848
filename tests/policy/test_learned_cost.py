"""The learned cost on a device, from made-up times."""

import random

import pytest

from xpurt import _C


def after(*times: float, expected: float = 1.0) -> float:
    cost = _C.testing.LearnedCost()
    for time in times:
        cost.record(time)
    return cost.estimate(expected)


def test_without_a_time_it_is_what_was_expected() -> None:
    assert after(expected=7.0) == 7.0
    cost = _C.testing.LearnedCost()
    assert (cost.count, cost.is_known, cost.has_converged) == (0, False, False)


def test_the_first_time_is_dropped() -> None:
    assert after(5000.0, expected=7.0) == 7.0
    assert after(5.0, 3.0, 3.0, 3.0, 3.0) == 3.0
    assert after(5000.0, 3.0, 3.0, 3.0) == 3.0


def test_until_the_second_time_the_first_one_is_an_upper_bound() -> None:
    cost = _C.testing.LearnedCost()
    cost.record(5.0)
    assert (cost.estimate(7.0), cost.bounded(7.0)) == (7.0, 5.0)
    cost.record(6.0)
    assert cost.bounded(6.5) == 6.0


def test_ten_times_settle_it() -> None:
    draw = random.Random(1)
    cost = _C.testing.LearnedCost()
    for _ in range(10):
        assert not cost.has_converged
        cost.record(100 * draw.uniform(0.9, 1.1))
    assert cost.has_converged
    assert cost.estimate(1.0) == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize("place", range(10))
def test_one_outlier_does_not_count(place: int) -> None:
    times = [100.0] * 10
    times[place] *= 400
    assert after(*times, expected=100) == pytest.approx(100)


@pytest.mark.parametrize("place", [1, 2])
def test_an_outlier_among_the_first_few_is_not_believed(place: int) -> None:
    times = [100.0, 100.0, 100.0]
    times[place] *= 400
    assert after(*times, expected=100) == pytest.approx(100)
    # A single time that is all there is: something in between.
    assert 100 < after(100, 40_000, expected=100) < 40_000 / 10


def test_what_is_delayed_now_and_again_is_told_from_what_takes_longer() -> None:
    cost = _C.testing.LearnedCost()
    for time in (100.0, 100.0, 190.0, 100.0, 199.0, 100.0, 198.0, 100.0, 197.0, 102.0):
        cost.record(time)
    assert cost.undisturbed(150) == pytest.approx(100, rel=0.01)
    assert cost.estimate(150) > 120


@pytest.mark.parametrize("spikes", [1, 3, 5, 9, 50])
def test_a_spike_is_forgotten_within_ten_times(spikes: int) -> None:
    cost = _C.testing.LearnedCost()
    for _ in range(10):
        cost.record(100.0)
    for _ in range(spikes):
        cost.record(40_000.0)
    for _ in range(10):
        cost.record(100.0)
    assert cost.estimate(1.0) == pytest.approx(100)


def test_a_device_that_has_become_slower_is_found_out_within_ten_times() -> None:
    cost = _C.testing.LearnedCost()
    for _ in range(1000):
        cost.record(100.0)
    for _ in range(10):
        cost.record(300.0)
    assert cost.estimate(1.0) == pytest.approx(300)


def test_what_is_no_time_is_not_noted() -> None:
    cost = _C.testing.LearnedCost()
    for time in (float("nan"), float("inf"), -1.0):
        cost.record(time)
    assert cost.count == 0
