"""The choices in one bucket of calls, with a clock that the test sets."""

import itertools
import random

import pytest
from made_up_program import BUILD_US, Clock, Program

from xpurt import _C


def steady(native_us: float, kernel_us: float) -> Clock:
    return lambda kernel, _: kernel_us if kernel else native_us


def test_a_kernel_that_wins_is_built_once_it_could_have_paid() -> None:
    program = Program(_C.testing.Learner(1_000, 250), steady(1_000, 250))
    program.run(50)
    assert not program.learner.kernel
    assert program.built_after_us is None
    program.run(500)
    assert program.learner.kernel
    # Three quarters of the time could have been saved; the learner checks from time to
    # time.
    assert program.built_after_us == pytest.approx(BUILD_US / 0.75, rel=0.15)


def test_what_is_built_already_is_taken_soon() -> None:
    program = Program(_C.testing.Learner(1_000, 250, is_built=True), steady(1_000, 250))
    program.run(20)
    assert program.learner.kernel


def test_a_kernel_for_long_calls_is_taken_within_a_few() -> None:
    program = Program(_C.testing.Learner(70_000, 25_000), steady(70_000, 25_000))
    program.run(10)
    assert program.learner.kernel


@pytest.mark.parametrize(
    ("expected_us", "calls", "least_builds"),
    [
        pytest.param(1_300, 5_000, 100, id="may win"),
        pytest.param(5_000, 20_000, 200, id="unlikely to win"),
    ],
)
def test_a_kernel_is_tried_for_a_small_part_of_the_time(
    expected_us: float, calls: int, least_builds: int
) -> None:
    program = Program(_C.testing.Learner(1_000, expected_us), steady(1_000, 500))
    program.run(calls)
    assert program.built_after_us is None
    program.run(20_000)
    assert program.learner.kernel
    assert program.built_after_us is not None
    assert program.built_after_us >= least_builds * BUILD_US


def test_an_expectation_that_is_wrong_costs_little() -> None:
    """Expected to win by far, it loses: that is tried, and not again and again."""
    program = Program(_C.testing.Learner(1_000, 100), steady(1_000, 1_500))
    program.run(20_000)
    assert not program.learner.kernel
    native_alone = program.calls * 1_000
    assert program.spent_us < 1.02 * native_alone


def test_another_tier_s_advantage_is_seen_from_the_kernel_s_side() -> None:
    def clock(kernel: bool, call: int) -> float:
        return 100 if not kernel else 80 if call < 20_000 else 400

    learner = _C.testing.Learner(100, 90, is_built=True)
    program = Program(learner, clock)
    program.run(19_000)
    assert learner.kernel
    program.run(10_000)
    assert not learner.kernel


def test_interruptions_do_not_count() -> None:
    """One call of five takes a hundred times as long, on the better tier alone."""

    def clock(kernel: bool, call: int) -> float:
        return 50_000.0 if kernel and call % 5 == 0 else 500.0 if kernel else 1_000.0

    learner = _C.testing.Learner(1_000, 500, is_built=True)
    program = Program(learner, clock)
    share = []
    for _ in range(200):
        program.run(100)
        share.append(learner.kernel)
    assert sum(share) > 190


def test_noise_does_not_make_it_sway() -> None:
    draw = random.Random(0)

    def clock(kernel: bool, _: int) -> float:
        return draw.lognormvariate(0, 0.3) * (700.0 if kernel else 1_000.0)

    learner = _C.testing.Learner(1_000, 700, is_built=True)
    program = Program(learner, clock)
    tiers = []
    for _ in range(300):
        program.run(100)
        tiers.append(learner.kernel)
    changes = sum(a != b for a, b in itertools.pairwise(tiers))
    assert sum(tiers) > 0.9 * len(tiers)
    assert changes < 10


def test_old_times_fade() -> None:
    """The kernel becomes slow, as when another process takes the device."""

    def clock(kernel: bool, call: int) -> float:
        return 1_000.0 if not kernel else 300.0 if call < 10_000 else 5_000.0

    learner = _C.testing.Learner(1_000, 300, is_built=True)
    program = Program(learner, clock)
    program.run(9_900)
    assert learner.kernel
    program.run(10_000)
    assert not learner.kernel


@pytest.mark.parametrize("us", [5.0, 50.0, 5_000.0])
def test_turns_stall_the_program_for_a_hundredth_of_its_time(us: float) -> None:
    program = Program(_C.testing.Learner(us * 3, us, is_built=True), steady(us * 3, us))
    program.run(200_000)
    assert program.learner.kernel
    assert program.stalled_us < 0.015 * program.spent_us
    assert program.stalled_us > 0  # and yet there are samples


def test_a_kernel_that_lost_is_tried_about_once_a_second() -> None:
    trials = []

    def clock(kernel: bool, call: int) -> float:
        if kernel:
            trials.append(call)
        return 2_000.0 if kernel else 1_000.0

    program = Program(_C.testing.Learner(1_000, 900, is_built=True), clock)
    program.run(100_000)
    assert not program.learner.kernel
    assert 150 < len(trials) < 350  # three calls each, in 100 seconds
    assert program.spent_us < 1.005 * 1_000 * program.calls
