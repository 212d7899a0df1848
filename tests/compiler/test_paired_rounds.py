"""Which calls of a graph measure its two forms, with times that the test sets."""

import random
from collections.abc import Callable

from xpurt.compiler.paired_rounds import PairedRounds

Clock = Callable[[bool, int], float]  # of the form and the number of the call: us


def run(rounds: PairedRounds, calls: int, clock: Clock) -> list[bool]:
    """Which calls ran kernels."""
    found = []
    for number in range(calls):
        turn = rounds.next()
        if turn.timed:
            rounds.record(turn.kernels, clock(turn.kernels, number))
        found.append(turn.kernels)
    return found


def steady(native_us: float, kernels_us: float) -> Clock:
    return lambda kernels, _: kernels_us if kernels else native_us


def test_kernels_are_tried_once_they_could_have_paid() -> None:
    ran = run(PairedRounds(1_000, 500, build_us=100_000), 1_000, steady(1_000, 400))
    first = ran.index(True)
    assert 200 <= first <= 210  # of 500 us each
    assert ran[first + 12 :].count(False) <= 16


def test_a_form_that_loses_costs_about_one_percent() -> None:
    ran = run(PairedRounds(1_000, 500, build_us=0), 10_000, steady(1_000, 3_000))
    lost = sum(ran) * 2_000 / (10_000 * 1_000)
    assert 0.005 < lost < 0.02


def test_equal_forms_do_not_alternate() -> None:
    rounds = PairedRounds(1_000, 500, build_us=0)
    noise = random.Random(7)
    used = set()
    for _ in range(50):
        run(rounds, 100, lambda kernels, _: 1_000 + noise.random() * 40)
        used.add(rounds.kernels)
    assert used == {False}


def test_calls_that_were_interrupted_are_no_reason() -> None:
    """Native code is faster, but some of its timed calls take very long."""
    noise = random.Random(7)

    def clock(kernels: bool, number: int) -> float:
        if kernels:
            return 1_300
        return 9_000 if noise.random() < 0.4 else 1_000

    ran = run(PairedRounds(1_000, 500, build_us=0), 10_000, clock)
    assert sum(ran) < 1_500


def test_a_form_that_becomes_faster_is_noticed() -> None:
    def clock(kernels: bool, number: int) -> float:
        return 400.0 if kernels and number > 1_000 else 1_000.0

    rounds = PairedRounds(1_000, 500, build_us=0)
    assert run(rounds, 1_500, clock)[-50:].count(True) >= 48


def test_calls_that_raise_errors_are_not_timed() -> None:
    rounds = PairedRounds(1_000, 500, build_us=0)
    for _ in range(500):
        rounds.next()
    assert rounds.measured_us(kernels=True) is None
    assert not rounds.kernels
