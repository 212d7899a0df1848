"""When the first calls of a frozen graph tell its faster form, with times that the test
sets."""

import random
from collections.abc import Callable

import pytest

from xpurt.compiler.paired_rounds import FIRST_ROUNDS
from xpurt.compiler.sequential_rounds import MOST_ROUNDS, SequentialRounds


def answer(clock: Callable[[bool], float]) -> tuple[bool, int]:
    """Whether kernels are found to be faster, and the number of calls until then."""
    rounds = SequentialRounds()
    for calls in range(4 * MOST_ROUNDS + 1):
        found = rounds.faster()
        if found is not None:
            return found, calls
        turn = rounds.next()
        if turn.timed:
            rounds.record(turn.kernels, clock(turn.kernels))
    raise AssertionError("there is no answer")


@pytest.mark.parametrize("kernels_us", [900.0, 1_100.0])
def test_a_clear_answer_takes_the_fewest_rounds(kernels_us: float) -> None:
    found = answer(lambda kernels: kernels_us if kernels else 1_000.0)
    assert found == (kernels_us < 1_000, 4 * FIRST_ROUNDS)


def test_a_near_tie_takes_all_rounds() -> None:
    found = answer(lambda kernels: 990.0 if kernels else 1_000.0)
    assert found == (True, 4 * MOST_ROUNDS)


def test_the_least_time_decides_a_near_tie() -> None:
    """The better form has a late best time."""
    times = {False: [1_000.0] * MOST_ROUNDS, True: [1_010.0] * MOST_ROUNDS}
    times[True][-1] = 980.0
    assert answer(lambda kernels: times[kernels].pop(0)) == (True, 4 * MOST_ROUNDS)


def test_times_without_a_second_one_are_measured_on() -> None:
    """Native code is slower, and three calls of kernels were all interrupted."""
    kernels = [2_000.0, 1_600.0, 2_400.0, 900.0, 905.0]
    found = answer(lambda by_kernels: kernels.pop(0) if by_kernels else 1_000.0)
    assert found == (True, 4 * 5)


def test_noise_of_other_programs() -> None:
    """With half of the calls interrupted, the faster form of two is found nearly
    always."""
    noise = random.Random(7)

    def clock(kernels: bool) -> float:
        taken = 82 if kernels else 93
        return taken + (noise.random() * 100 if noise.random() < 0.5 else 0)

    assert sum(answer(clock)[0] for _ in range(500)) > 485
