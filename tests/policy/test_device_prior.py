"""The cost of an op on a device where other ops were slow, from made-up times."""

import pytest

from xpurt import _C


def after(*samples: tuple[float, float]) -> _C.testing.DevicePrior:
    """Samples of different ops: measured and expected microseconds."""
    made = _C.testing.DevicePrior()
    for op, (measured_us, expected_us) in enumerate(samples, start=1):
        made.record(op, measured_us, expected_us)
    return made


def test_two_slow_ops_are_not_enough() -> None:
    assert after((900.0, 10.0), (900.0, 10.0)).corrected_us(10.0) == 10


def test_three_samples_of_one_op_are_not_enough() -> None:
    made = _C.testing.DevicePrior()
    for _ in range(5):
        made.record(7, 900.0, 10.0)
    assert made.corrected_us(10.0) == 10


def test_the_least_ratio_of_three_slow_ops_counts() -> None:
    made = after((200.0, 10.0), (4_000.0, 1_000.0), (30_000.0, 1_000.0))
    assert made.corrected_us(10_000.0) == 40_000


def test_the_least_delay_counts_for_a_short_op() -> None:
    made = after((5_010.0, 10.0), (6_000.0, 1_000.0), (9_000.0, 4_000.0))
    assert made.corrected_us(1.0) == 5_001


def test_one_op_that_is_as_fast_as_expected_ends_it() -> None:
    made = after((900.0, 10.0), (900.0, 10.0), (900.0, 10.0), (11.0, 10.0))
    assert made.corrected_us(10.0) == 10


def test_the_newest_sample_of_an_op_replaces_its_older_one() -> None:
    made = after((900.0, 10.0), (900.0, 10.0), (900.0, 10.0))
    made.record(2, 50.0, 10.0)
    assert made.corrected_us(10.0) == 50


@pytest.mark.parametrize("measured_us", [float("nan"), float("inf")])
def test_what_is_no_time_is_ignored(measured_us: float) -> None:
    made = after((900.0, 10.0), (900.0, 10.0), (measured_us, 10.0))
    assert made.corrected_us(10.0) == 10
