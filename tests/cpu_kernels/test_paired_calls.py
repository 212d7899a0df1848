"""When calls of CPU tensors are measured, and what is chosen: Note [Paired calls]."""

from typing import Any

import pytest

from xpurt import _C

KEY = 12345
BUILD_US = 100.0


def choice() -> Any:
    return _C.testing.PairedChoice()


def run(made: Any, stock_us: float, row_us: float, key: int = KEY) -> tuple[bool, bool]:
    """One call: how it runs. A timed one takes what is given."""
    by_row, timed = made.next(key, BUILD_US)
    if timed:
        made.record(key, by_row, row_us if by_row else stock_us)
    return by_row, timed


def test_pytorchs_kernel_runs_until_the_preparation_would_have_paid() -> None:
    made = choice()
    assert [run(made, 30, 1) for _ in range(4)] == [(False, True)] * 4
    assert run(made, 30, 1) == (False, False)  # the first call of a round


def test_a_round_times_the_second_call_of_each() -> None:
    made = choice()
    run(made, BUILD_US, 1)
    assert [run(made, 30, 20) for _ in range(4)] == [
        (False, False),
        (False, True),
        (True, False),
        (True, True),
    ]


@pytest.mark.parametrize(("row_us", "by_row"), [(20, True), (29.5, False), (40, False)])
def test_three_rounds_decide(row_us: float, by_row: bool) -> None:
    made = choice()
    run(made, BUILD_US, row_us)
    for _ in range(12):
        run(made, 30, row_us)
    assert [run(made, 30, row_us) for _ in range(3)] == [(by_row, False)] * 3


def test_the_least_time_counts() -> None:
    made = choice()
    run(made, BUILD_US, 1)
    for row_us in (90, 20, 90):
        for _ in range(4):
            run(made, 30, row_us)
    assert run(made, 30, 20) == (True, False)


def test_a_class_that_the_row_refuses_stays_with_pytorch() -> None:
    made = choice()
    run(made, BUILD_US, 1)
    made.refuse(KEY)
    assert [run(made, 30, 1) for _ in range(20)] == [(False, False)] * 20


def test_each_class_is_decided_by_itself() -> None:
    made = choice()
    other = KEY + 2 * 64  # the same slot of the quick decisions
    for key, row_us in ((KEY, 20), (other, 40)):
        run(made, BUILD_US, row_us, key)
        for _ in range(12):
            run(made, 30, row_us, key)
    for _ in range(2):
        assert run(made, 30, 20, KEY) == (True, False)
        assert run(made, 30, 40, other) == (False, False)
