"""Which calls measure two forms, and which form stays: Note [Two forms] in
csrc/schedule/planning/two_forms.h. The test sets the times."""

import random
from collections.abc import Callable

import pytest

from xpurt import _C

Clock = Callable[[bool, int], float]  # of the form and the number of the call: us

ROUND = [(False, False), (False, True), (True, False), (True, True)]
FEWEST = 3  # first rounds
MOST = _C.TwoForms.most_calls // 4


def steady(first_us: float, second_us: float) -> Clock:
    return lambda second, _: second_us if second else first_us


def run(forms: _C.TwoForms, calls: int, clock: Clock) -> list[bool]:
    """Which calls ran the second form."""
    found = []
    for number in range(calls):
        second, timed = forms.next()
        if timed:
            forms.record(second, clock(second, number))
        found.append(second)
    return found


def lasting(price_us: float = 0, lost_us: float = 500) -> _C.TwoForms:
    """Forms that are measured again and again."""
    return _C.TwoForms(price_us, lost_us, ends=False)


# When the first rounds begin


def test_the_second_form_is_tried_once_it_could_have_paid() -> None:
    ran = run(lasting(100_000), 1_000, steady(1_000, 400))
    first = ran.index(True)
    assert 200 <= first <= 210  # of 500 us each
    assert ran[first + 12 :].count(False) <= 16


def test_the_first_call_is_in_a_round_if_the_trial_is_free() -> None:
    forms = lasting(0, 0)
    assert [forms.next() for _ in ROUND] == ROUND


def test_the_second_call_is_timed_if_it_is_not_known_what_is_lost() -> None:
    forms = _C.TwoForms(100, 0, ends=True)
    assert [forms.next(), forms.next()] == ROUND[:2]
    assert forms.lost_us == 0
    forms.record(False, 30)
    assert forms.lost_us == 30
    assert forms.least_us(False) == 0  # as a part of no round
    assert [forms.next(), forms.next()] == [(False, False)] * 2  # 120 us in all
    assert [forms.next() for _ in ROUND] == ROUND


def test_another_call_is_timed_if_the_second_one_raised_an_error() -> None:
    forms = _C.TwoForms(100, 0, ends=True)
    assert [forms.next() for _ in range(3)] == [*ROUND[:2], ROUND[1]]
    forms.record(False, 30)
    assert forms.next() == (False, False)


def test_a_clock_that_shows_no_time() -> None:
    forms = _C.TwoForms(100, 0, ends=True)
    run(forms, 100, steady(0, 0))
    assert forms.lost_us > 0
    assert forms.decided is None


# How the first rounds end


def answer(clock: Callable[[bool], float]) -> tuple[bool, int]:
    """Whether the second form is found to be faster, and the number of calls until
    then."""
    forms = _C.TwoForms(0, 0, ends=True)
    for calls in range(_C.TwoForms.most_calls + 1):
        if forms.decided is not None:
            return forms.decided, calls
        second, timed = forms.next()
        if timed:
            forms.record(second, clock(second))
    raise AssertionError("there is no answer")


@pytest.mark.parametrize("second_us", [900.0, 1_100.0])
def test_a_clear_answer_takes_the_fewest_rounds(second_us: float) -> None:
    found = answer(lambda second: second_us if second else 1_000.0)
    assert found == (second_us < 1_000, 4 * FEWEST)


@pytest.mark.parametrize("second_us", [960.0, 1_040.0])
def test_after_a_near_tie_in_all_rounds_the_first_form_stays(second_us: float) -> None:
    found = answer(lambda second: second_us if second else 1_000.0)
    assert found == (False, 4 * MOST)


def test_the_least_time_decides_after_a_near_tie() -> None:
    """The better form has a late best time."""
    times = {False: [1_000.0] * MOST, True: [1_010.0] * MOST}
    times[True][-1] = 940.0
    assert answer(lambda second: times[second].pop(0)) == (True, 4 * MOST)


def test_times_without_a_second_one_are_measured_on() -> None:
    """The first form is slower, and three calls of the second were all interrupted."""
    second_us = [2_000.0, 1_600.0, 2_400.0, 900.0, 905.0]
    found = answer(lambda second: second_us.pop(0) if second else 1_000.0)
    assert found == (True, 4 * 5)


def test_noise_of_other_programs() -> None:
    """With half of the calls interrupted, the faster form of two is found nearly
    always."""
    noise = random.Random(7)

    def clock(second: bool) -> float:
        taken = 82 if second else 93
        return taken + (noise.random() * 100 if noise.random() < 0.5 else 0)

    assert sum(answer(clock)[0] for _ in range(500)) > 485


@pytest.mark.parametrize("second_us", [900.0, 1_100.0])
def test_a_choice_that_ends_times_no_call_again(second_us: float) -> None:
    forms = _C.TwoForms(0, 0, ends=True)
    run(forms, 4 * FEWEST, steady(1_000, second_us))
    stays = (second_us < 1_000, False)
    assert {forms.next() for _ in range(10_000)} == {stays}
    forms.record(not stays[0], 1)  # of another thread, too late
    assert forms.next() == stays


# Later rounds


def test_a_form_that_loses_costs_about_one_percent() -> None:
    ran = run(lasting(), 10_000, steady(1_000, 3_000))
    lost = sum(ran) * 2_000 / (10_000 * 1_000)
    assert 0.005 < lost < 0.02


def test_rounds_are_at_least_a_hundred_calls_apart() -> None:
    ran = run(lasting(), 4 * FEWEST + 100 + 4, steady(1_000_000, 900_000))
    assert ran.index(False, 4 * FEWEST) == 4 * FEWEST + 100 + 2


def test_equal_forms_do_not_alternate() -> None:
    forms = lasting()
    noise = random.Random(7)
    used = set()
    for _ in range(50):
        run(forms, 100, lambda *_: 1_000 + noise.random() * 40)
        used.add(forms.in_use)
    assert used == {False}


def test_calls_that_were_interrupted_are_no_reason() -> None:
    """The first form is faster, but some of its timed calls take very long."""
    noise = random.Random(7)

    def clock(second: bool, number: int) -> float:
        if second:
            return 1_300
        return 9_000 if noise.random() < 0.4 else 1_000

    assert sum(run(lasting(), 10_000, clock)) < 1_500


def test_a_form_that_becomes_faster_is_noticed() -> None:
    def clock(second: bool, number: int) -> float:
        return 400.0 if second and number > 1_000 else 1_000.0

    forms = lasting()
    assert run(forms, 1_500, clock)[-50:].count(True) >= 48
    assert forms.decided is None


def test_a_form_that_becomes_slower_is_noticed() -> None:
    """Its old times, which were shorter, do not count for ever."""

    def clock(second: bool, number: int) -> float:
        return 2_000.0 if second and number > 1_000 else 400.0 + 600.0 * (not second)

    assert run(lasting(), 6_000, clock)[-50:].count(False) >= 48


# Calls that raise errors have no time


@pytest.mark.parametrize("ends", [False, True])
def test_calls_that_raise_errors_are_not_timed(ends: bool) -> None:
    forms = _C.TwoForms(0, 0, ends)
    turns = [forms.next() for _ in range(500)]
    assert turns[: 4 * MOST] == ROUND * MOST
    assert turns[4 * MOST :][:100] == [(False, False)] * 100
    assert any(second for second, _ in turns[4 * MOST :]) != ends
    assert forms.least_us(True) == 0
    assert not forms.in_use


def test_the_times_of_other_calls_count_if_some_raise_errors() -> None:
    forms = _C.TwoForms(0, 0, ends=True)
    for number in range(4 * MOST + 1):
        second, timed = forms.next()
        if timed and number < 8:
            forms.record(second, 500 if second else 1_000)
    assert forms.decided is True


def test_a_second_form_that_is_refused_never_runs_again() -> None:
    forms = lasting()
    run(forms, 500, steady(1_000, 400))
    assert forms.in_use
    forms.refuse()
    assert {forms.next() for _ in range(10_000)} == {(False, False)}
    assert forms.decided is False
