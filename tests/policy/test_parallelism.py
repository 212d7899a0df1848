"""The average parallelism of a program's long ops, and what it is worth."""

import pytest

from xpurt import _C

US = 1000.0
NO_DEVICE = float("inf")


class Program:
    """Ops on values, each value of one version."""

    def __init__(self) -> None:
        self.parallelism = _C.Parallelism()
        self.values = 0

    def value(self) -> int:
        self.values += 1
        return self.values

    def op(self, *reads: int, blocks: bool = False) -> int:
        end_us = self.parallelism.add(US, [(read, 0) for read in reads], blocks)
        made = self.value()
        self.parallelism.add_result(made, 0, end_us)
        return made

    def chains(self, count: int, steps: int) -> None:
        """They read values that were there before, and submit alternately."""
        now = list(range(1, count + 1))
        for _ in range(steps):
            now = [self.op(each) for each in now]


def average_of(chains: int, steps: int = 64, calls: int = 4) -> float:
    program = Program()
    program.values = chains
    for _ in range(calls):
        program.chains(chains, steps)
        program.parallelism.join()
    return program.parallelism.average


def test_an_op_that_was_not_counted_has_blocked_the_host() -> None:
    program = Program()
    start = program.value()
    program.op(start)
    for _ in range(60):
        program.op(program.op(start))
        program.op(program.value())
    # The second of the two and the next first one run beside what is unknown.
    assert program.parallelism.average < 1.6


@pytest.mark.parametrize("chains", [1, 2, 3])
def test_chains_are_as_parallel_as_there_are_chains(chains: int) -> None:
    assert average_of(chains) == pytest.approx(chains, rel=0.1)


def test_before_the_first_op_nothing_is_parallel() -> None:
    assert _C.Parallelism().average == 1


def test_what_comes_after_a_wait_does_not_overlap() -> None:
    program = Program()
    start = program.value()
    for _ in range(200):
        program.op(start)
        program.parallelism.join()
    assert program.parallelism.average == 1


def test_what_comes_after_an_op_that_blocks_the_host_does_not_overlap() -> None:
    program = Program()
    start = program.value()
    for _ in range(200):
        program.op(start, blocks=True)
    assert program.parallelism.average == 1


def test_a_value_of_unknown_origin_counts_as_the_newest() -> None:
    """A short op that is not counted has read what was just computed."""
    program = Program()
    for _ in range(200):
        program.op(program.value())
    assert program.parallelism.average == 1


def test_a_value_that_another_op_has_written_counts_as_the_newest() -> None:
    parallelism = _C.Parallelism()
    for step in range(200):
        parallelism.add(US, [(1, step)])
    assert parallelism.average == 1
    for _ in range(200):
        parallelism.add(US, [(1, 1000)])
    assert parallelism.average > 5


def test_an_operand_that_is_a_result_keeps_the_version_of_the_next_read() -> None:
    parallelism = _C.Parallelism()
    for version in range(200):
        # In place: each op reads what the one before it has written.
        end_us = parallelism.add(US, [(1, version), (2, 0)])
        parallelism.add_written(1, version + 1, end_us)
        parallelism.add_result(1, version, end_us)
        parallelism.add(US, [(2, 0)])
    assert parallelism.average == pytest.approx(2, rel=0.1)


def test_old_ops_fade() -> None:
    program = Program()
    program.values = 4
    program.chains(4, 500)
    assert program.parallelism.average > 3
    program.chains(1, 600)
    assert program.parallelism.average < 1.1


def test_a_single_chain_is_worth_no_slower_kernel() -> None:
    assert not _C.Overlap(1.01 * US, US, 1 / US).prefers_queue(1, True)
    assert _C.Overlap(US, US, 1 / US).us(1) == pytest.approx(US)


def test_two_chains_are_worth_a_kernel_that_is_a_little_slower() -> None:
    # nA / (n + A - 1) for two devices alike.
    assert _C.Overlap(US, US, 1 / US).us(2) == pytest.approx(US / (4 / 3))
    assert _C.Overlap(1.2 * US, US, 1 / US).prefers_queue(2, False)
    assert not _C.Overlap(1.5 * US, US, 1 / US).prefers_queue(2, False)
    assert _C.Overlap(1.5 * US, US, 1 / US).prefers_queue(20, False)


def test_other_devices_have_to_bring_something() -> None:
    alone = _C.Overlap(1.1 * US, US, 0)
    assert not alone.prefers_queue(20, False)
    assert alone.always_blocks()
    assert not _C.Overlap(1.1 * US, US, 1 / (20 * US)).prefers_queue(20, False)
    assert not _C.Overlap(1.1 * US, US, 1 / US).always_blocks()


def test_two_choices_that_are_about_as_good_do_not_alternate() -> None:
    about = _C.Overlap(US / 0.74, US, 1 / US)
    assert not about.prefers_queue(2, False)
    assert about.prefers_queue(2, True)


def test_short_ops_and_missing_kernels_stay_as_they_are() -> None:
    assert not _C.Overlap(150, 150, 1 / 150).prefers_queue(20, False)
    assert not _C.Overlap(NO_DEVICE, US, 1 / US).prefers_queue(20, False)
    assert _C.Overlap(US, NO_DEVICE, 0).prefers_queue(1, False)
