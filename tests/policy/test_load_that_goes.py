"""Another program's load makes the faster tier slow for a while, in made-up time."""

import itertools

import pytest
from made_up_program import Program

from xpurt import _C

QUIET_US, LOADED_US, SOON_US = 20e6, 10e6, 2e6


class LoadedProgram(Program):
    """Calls of `kernel_us` and `native_us`. While `loads` is set, each tier takes its
    multiple of them."""

    def __init__(self, kernel_us: float, native_us: float) -> None:
        learner = _C.testing.Learner(native_us, kernel_us, is_built=True)
        super().__init__(learner, self.us)
        self.kernel_us, self.native_us = kernel_us, native_us
        self.loads = {True: 1.0, False: 1.0}

    def us(self, kernel: bool, _: int) -> float:
        return self.loads[kernel] * (self.kernel_us if kernel else self.native_us)

    def part_by_kernel(self, us: float) -> float:
        """The part of the calls in the next `us` that the kernel runs."""
        begin, end = self.calls, self.spent_us + us
        of_kernel = 0
        while self.spent_us < end:
            before = self.calls
            if self.decide():
                of_kernel += self.calls - before
        return of_kernel / (self.calls - begin)


# A load of one tier alone is not seen by the other one, which is in use: there a trial
# has to be cheap.
@pytest.mark.parametrize(
    ("us", "of_other"),
    [*itertools.product([50.0, 1_000.0], [1.0, 1.5, 3.0]), (3e4, 1.5), (3e4, 3.0)],
)
@pytest.mark.parametrize("kernel_wins", [True, False], ids=["kernel", "native"])
@pytest.mark.parametrize("seconds", [1, 10, 40])
def test_soon_after_a_load_the_faster_tier_is_back(
    us: float, of_other: float, kernel_wins: bool, seconds: int
) -> None:
    """The load makes the faster tier 3 times as slow, and the other one `of_other`
    times."""
    program = LoadedProgram(*((us, 1.5 * us) if kernel_wins else (1.5 * us, us)))
    program.run_for(QUIET_US)
    assert program.learner.kernel == kernel_wins
    program.loads = {kernel_wins: 3.0, not kernel_wins: of_other}
    program.run_for(seconds * 1e6)
    program.loads = {True: 1.0, False: 1.0}
    program.run_for(SOON_US)
    assert program.learner.kernel == kernel_wins
    part = program.part_by_kernel(QUIET_US)
    assert (part if kernel_wins else 1 - part) > 0.98


@pytest.mark.parametrize("kernel_us", [39_000.0, 390.0])
def test_times_under_a_load_do_not_count_against_times_after_it(
    kernel_us: float,
) -> None:
    """The load ends while the kernel is tried for the first time."""
    program = LoadedProgram(kernel_us, kernel_us / 1.4)
    program.loads = {True: 3.0, False: 3.0}
    program.run(15)
    assert program.built_after_us is None
    while not program.decide():
        pass
    program.loads = {True: 1.0, False: 1.0}
    assert program.part_by_kernel(1_600 * kernel_us) < 0.05


def test_a_load_that_comes_and_goes_costs_little() -> None:
    """Every change is an alarm, and none changes the choice."""
    program = LoadedProgram(1_000.0, 1_500.0)
    of_kernel = 0.0
    for turn in range(200):
        load = 3.0 if turn % 2 else 1.0
        program.loads = {True: load, False: load}
        of_kernel += program.part_by_kernel(0.5e6) / 200
    assert of_kernel > 0.97
