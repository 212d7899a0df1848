"""When a candidate that is not in use is tried, from made-up times."""

import pytest

from xpurt import _C


def wait_us(
    cost_us: float, now_us: float = 1000.0, build_us: float = 0.0, **of: bool
) -> float:
    what = {"is_new": True, "may_divide": False, **of}
    return _C.testing.spent_before_trial(
        cost_us=cost_us, now_us=now_us, build_us=build_us, **what
    )


def test_three_calls_and_a_build_are_one_percent() -> None:
    assert wait_us(1000.0) == pytest.approx(300_000)
    assert wait_us(1000.0, build_us=7000.0) == pytest.approx(1_000_000)
    assert wait_us(1000.0, build_us=7000.0, is_new=False) == pytest.approx(300_000)


def test_what_takes_many_times_as_long_is_tried_late() -> None:
    assert wait_us(5000.0) == pytest.approx(15_000_000)


def test_what_could_do_a_part_of_a_large_op_is_tried_soon() -> None:
    assert wait_us(1000.0, may_divide=True) == pytest.approx(30_000)
    assert wait_us(5000.0, may_divide=True) == pytest.approx(150_000)
    assert wait_us(9000.0, may_divide=True) == pytest.approx(27_000_000)
    assert wait_us(1000.0, may_divide=True, is_new=False) == wait_us(1000.0)


def test_short_ops_are_not_divided() -> None:
    assert wait_us(100.0, now_us=100.0, may_divide=True) == wait_us(100.0, 100.0)
