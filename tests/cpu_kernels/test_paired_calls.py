"""When calls of CPU tensors are measured, and what is chosen: Note [Paired calls]."""

from typing import Any

import pytest

from xpurt import _C

KEY = 12345
BUILD_US = 100.0
ROUND = [(False, False), (False, True), (True, False), (True, True)]


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
    # The second call is timed, so that it is known what the calls take.
    first = [(False, False), (False, True), (False, False), (False, False)]
    assert [run(made, 30, 1) for _ in range(4)] == first
    assert [run(made, 30, 20) for _ in range(4)] == ROUND


def begun() -> Any:
    """A choice whose next call is the first one of a round."""
    made = choice()
    for _ in range(2):
        run(made, BUILD_US, 1)
    return made


@pytest.mark.parametrize(("row_us", "by_row"), [(20, True), (40, False)])
def test_three_rounds_decide(row_us: float, by_row: bool) -> None:
    made = begun()
    assert [run(made, 30, row_us) for _ in range(12)] == ROUND * 3
    assert [run(made, 30, row_us) for _ in range(3)] == [(by_row, False)] * 3


def test_pytorchs_kernel_stays_after_a_near_tie() -> None:
    made = begun()
    for _ in range(_C.TwoForms.most_calls):
        run(made, 30, 29)
    assert [run(made, 30, 1) for _ in range(20)] == [(False, False)] * 20


def test_a_class_that_the_row_refuses_stays_with_pytorch() -> None:
    made = begun()
    made.refuse(KEY)
    assert [run(made, 30, 1) for _ in range(20)] == [(False, False)] * 20


def test_each_class_is_decided_by_itself() -> None:
    made = choice()
    other = KEY + 2 * 64  # the same slot of the quick decisions
    for key, row_us in ((KEY, 20), (other, 40)):
        for _ in range(2):
            run(made, BUILD_US, row_us, key)
        for _ in range(12):
            run(made, 30, row_us, key)
    for _ in range(2):
        assert run(made, 30, 20, KEY) == (True, False)
        assert run(made, 30, 40, other) == (False, False)
