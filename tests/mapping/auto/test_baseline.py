"""A program is held to the best device alone where that is faster."""

import random
import statistics
from collections.abc import Callable

import pytest

from xpurt import _C

# The kinds of the long ops of a step: forward and backward of four equal layers.
LAYER = range(1, 13)
KINDS = [20, 21, *LAYER, *LAYER, *LAYER, *LAYER, 22]
FORWARD = len(KINDS)
KINDS += [23] + [kind + 30 for kind in [*LAYER, *LAYER, *LAYER, *LAYER]] + [24, 25]


class Program:
    """A loop of steps on a clock of its own. `slower`: time with all devices over time on
    the best one alone, by the op's number in its step."""

    def __init__(
        self,
        slower: Callable[[int], float],
        op_us: float = 2000.0,
        elsewhere: bool = True,
        noise: float = 0.0,
    ) -> None:
        self.slower, self.op_us, self.elsewhere = slower, op_us, elsewhere
        self.noise = noise
        self.baseline = _C.Baseline()
        self.now = 1.0
        self.changes = 0
        self.random = random.Random(1)

    def run(self, seconds: float) -> float:
        """Runs on. Returns the time over that on the best device alone."""
        begun, alone_us = self.now, 0.0
        while self.now < begun + seconds * 1e6:
            for op in range(len(KINDS)):
                before = self.baseline.is_alone
                changed = self.baseline.add(
                    KINDS[op], self.op_us, self.elsewhere and not before, self.now
                )
                assert changed == (self.baseline.is_alone != before)
                self.changes += changed
                factor = 1.0 if self.baseline.is_alone else self.slower(op)
                disturbed = 1 + self.noise * self.random.random()
                self.now += self.op_us * factor * disturbed
                alone_us += self.op_us * (1 + self.noise / 2)
        return (self.now - begun) / alone_us


def test_a_program_that_others_slow_down_is_held_to_one_device() -> None:
    program = Program(lambda op: 1.3)
    program.run(20)
    assert program.baseline.ratio == pytest.approx(1.3, rel=0.02)
    assert program.run(120) < 1.02


def test_a_program_that_gains_keeps_its_devices() -> None:
    program = Program(lambda op: 0.7)
    program.run(20)
    assert program.baseline.ratio == pytest.approx(0.7, rel=0.02)
    assert program.run(120) < 0.72


@pytest.mark.parametrize("op_us", [300.0, 2000.0, 10_000.0])
@pytest.mark.parametrize("whole", [1.08, 0.93])
def test_what_counts_is_whole_steps(whole: float, op_us: float) -> None:
    """Forward gains and backward loses, or the other way round."""
    program = Program(
        lambda op: whole - 0.3 if op < FORWARD else whole + 0.3, op_us, noise=0.3
    )
    program.run(60)
    assert program.baseline.ratio == pytest.approx(whole, rel=0.05)
    assert program.run(200) < min(whole, 1) + 0.03


def test_a_step_is_told_from_a_few_ops_that_not_every_step_has() -> None:
    """Such an op is about as long as the shortest that counts. A comparison of four
    pairs of turns, each of some steps, ends in time."""
    program = Program(lambda op: 0.95, noise=0.02)
    kinds = KINDS.copy()
    while program.baseline.ratio == 0 and program.now < 60e6:
        KINDS[:] = kinds
        for place in range(10, len(kinds), 10):
            if program.random.random() < 0.2:
                KINDS.insert(place, 100)
        program.run(0.001)
    KINDS[:] = kinds
    assert program.baseline.ratio == pytest.approx(0.95, rel=0.02)
    assert program.now < 22e6


def test_what_became_faster_is_found() -> None:
    program = Program(lambda op: 1.3)
    program.run(30)
    program.slower = lambda op: 0.6
    program.run(90)
    assert program.run(30) < 0.65


def test_what_became_slower_is_found_soon() -> None:
    """Another process has taken a device, and the program waits for its shards."""
    program = Program(lambda op: 0.7, noise=0.3)
    program.run(60)
    program.slower = lambda op: 1.3
    assert program.run(40) < 1.08


def test_noise_is_not_taken_for_a_slowdown() -> None:
    program = Program(lambda op: 0.7, noise=0.6)
    program.run(60)
    changes = program.changes
    program.run(60)
    assert program.changes - changes < 12


def test_what_gains_next_to_nothing_is_held_to_one_device() -> None:
    program = Program(lambda op: 0.99)
    program.run(30)
    assert program.baseline.is_alone


def test_a_tie_is_decided_early() -> None:
    """Eight pairs of turns take 18 seconds."""
    took = []
    for seed in range(5):
        program = Program(lambda op: 1.0, noise=0.6)
        program.random.seed(seed)
        program.run(6)
        begun = program.now
        while program.baseline.ratio == 0:
            program.run(0.001)
        took.append(program.now - begun)
    assert statistics.median(took) < 10e6


def test_another_program_is_compared_anew() -> None:
    """Both alternate later, as training and validation do: then neither is new."""
    program = Program(lambda op: 1.3)
    kinds, others = KINDS.copy(), [kind + 60 for kind in KINDS]
    program.run(40)
    KINDS[:], program.slower = others, lambda op: 0.6
    program.run(10)
    within = program.run(2)
    changes = program.changes
    for each in (kinds, others):
        KINDS[:] = each
        program.run(1)
    KINDS[:] = kinds
    assert within < 0.65
    assert program.changes == changes


def test_ops_that_were_too_short_before_are_no_other_program() -> None:
    program = Program(lambda op: 1.3)
    program.run(40)
    changes, kinds = program.changes, KINDS.copy()
    KINDS[:], program.op_us = [kind + 60 for kind in kinds], 250.0
    program.run(5)
    KINDS[:] = kinds
    assert program.baseline.is_alone
    assert program.changes == changes


def test_work_on_one_device_is_not_compared() -> None:
    program = Program(lambda op: 1.0, elsewhere=False)
    program.run(60)
    assert program.changes == 0
    assert program.baseline.ratio == 0


def test_a_pause_of_the_program_does_not_decide() -> None:
    program = Program(lambda op: 0.7)
    for _ in range(40):
        program.run(0.5)
        program.now += 0.4e6 * (program.random.random() < 0.3)
    assert program.run(30) < 0.72


def test_times_of_one_device_alone_are_learned_before_they_count() -> None:
    """It is slower at first, until the times of its kernels are known."""
    program = Program(lambda op: 1.2)
    program.run(6)
    turns = [program.now]
    while not program.baseline.is_alone:
        program.run(0.01)
    turns.append(program.now)
    while program.baseline.is_alone:
        program.run(0.01)
    assert program.now - turns[-1] > 1.5e6
    program.run(1)
    assert program.baseline.ratio == pytest.approx(1.2, rel=0.02)


def test_a_loop_that_changes_ends_the_turn() -> None:
    """The place where turns end is not met any more."""
    program = Program(lambda op: 1.3)
    program.run(6.4)
    KINDS.reverse()
    try:
        program.run(20)
    finally:
        KINDS.reverse()
    assert program.baseline.ratio == pytest.approx(1.3, rel=0.05)
