"""Collectives and steps of DDP on many simulated ranks, against formulas by hand."""

import math

import pytest

from xpurt.errors import PlanningError
from xpurt_tools.simulation import (
    ALGORITHMS,
    Cluster,
    Layer,
    Link,
    all_reduce_us,
    buckets_of,
    data_parallel_step,
)

MB = 1 << 20
ALPHA, RATE = 2.0, 1000.0
FLAT = Cluster("flat", Link(ALPHA, RATE), Link(ALPHA, RATE), 1)
RANKS = (2, 8, 64, 4096)


@pytest.mark.parametrize("ranks", RANKS)
def test_the_formulas_of_the_papers(ranks: int) -> None:
    steps, size = math.log2(ranks), 4096.0 * ranks
    moved = 2 * (ranks - 1) / ranks * size / RATE
    expected = {
        "ring": 2 * (ranks - 1) * ALPHA + moved,
        "halving-doubling": 2 * steps * ALPHA + moved,
        "tree": 2 * steps * (ALPHA + size / RATE),
    }
    for name, time in expected.items():
        assert all_reduce_us(FLAT, ranks, size, name) == pytest.approx(time)
    best = all_reduce_us(FLAT, ranks, size)
    assert best == pytest.approx(min(expected.values()))


def test_ranks_of_a_machine_share_its_link() -> None:
    """One message of a ring leaves a machine at once; of halving and doubling, all."""
    machines = Cluster("", Link(0.0, math.inf), Link(0.0, RATE), ranks_per_machine=4)
    size = 8.0 * RATE
    assert all_reduce_us(machines, 8, size, "ring") == pytest.approx(2 * 7)
    # At the distances 1 and 2 a part of the ranks leaves; at 4 all four do.
    halves = 2 * (4 * 1 + 2 * 2 + 1 * 4)
    assert all_reduce_us(machines, 8, size, "halving-doubling") == pytest.approx(halves)
    assert all_reduce_us(machines, 4, size, "ring") == 0.0


def test_ranks_share_processors_that_send() -> None:
    shared = Cluster("", Link(ALPHA, RATE), Link(ALPHA, RATE), 8, processors=2)
    alone = Cluster("", Link(ALPHA, RATE), Link(ALPHA, RATE), 8)
    for ranks, turns in ((2, 1), (4, 2), (8, 4)):
        found = all_reduce_us(shared, ranks, MB, "ring")
        assert found == pytest.approx(turns * all_reduce_us(alone, ranks, MB, "ring"))


def test_additions_take_time() -> None:
    adds = Cluster("", Link(0.0, math.inf), Link(0.0, math.inf), 8, 100.0)
    for name, parts in (("ring", 3 / 4), ("halving-doubling", 3 / 4), ("tree", 2)):
        assert all_reduce_us(adds, 4, 1000.0, name) == pytest.approx(10 * parts)


def test_one_rank_exchanges_nothing() -> None:
    for name in ALGORITHMS:
        assert all_reduce_us(FLAT, 1, MB, name) == 0.0


def test_buckets_are_those_of_ddp() -> None:
    """The first one ends at 1 MB, the others at 25 MB, in the reverse order."""
    layers = [Layer(10 * MB, 1.0)] * 6 + [Layer(MB, 1.0)]
    assert [(each.size_bytes // MB, each.layer) for each in buckets_of(layers)] == [
        (1, 6),
        (30, 3),
        (30, 0),
    ]


def test_backward_hides_what_it_can() -> None:
    layers = [Layer(30 * MB, 100.0)] * 3

    def all_reduce(size_bytes: float) -> float:
        return 60.0

    step = data_parallel_step(layers, 50.0, 8, all_reduce)
    assert step.compute_us == 350.0
    assert step.exchange_us == 180.0
    assert step.total_us == 350.0 + 60.0  # the last bucket is ready at the end
    apart = data_parallel_step(layers, 50.0, 8, all_reduce, overlap=False)
    assert apart.total_us == 350.0 + 180.0
    slow = data_parallel_step(layers, 50.0, 8, lambda size: 1000.0)
    assert slow.total_us == 50.0 + 100.0 + 3000.0
    assert slow.efficiency == pytest.approx(350 / 3150)


def test_ranks_that_share_a_processor_compute_by_turns() -> None:
    layers = [Layer(30 * MB, 100.0)] * 3
    step = data_parallel_step(
        layers, 50.0, 8, lambda size: 60.0, overlap=False, sharing=4
    )
    assert step.total_us == 4 * 350.0 + 3 * 60.0
    assert step.compute_us == 350.0


def test_the_slowest_rank_holds_up_the_others() -> None:
    layers = [Layer(MB, 100.0)] * 10
    totals = [
        data_parallel_step(layers, 0.0, ranks, lambda size: 0.0, noise=0.1).total_us
        for ranks in (1, 64, 4096)
    ]
    assert totals == sorted(totals)
    assert totals[2] > 1.08 * data_parallel_step(layers, 0, 1, lambda s: 0).total_us


def test_errors() -> None:
    with pytest.raises(PlanningError, match="there are best, ring"):
        all_reduce_us(FLAT, 8, MB, "star")
    with pytest.raises(PlanningError, match="at least one rank"):
        all_reduce_us(FLAT, 0, MB)
    with pytest.raises(PlanningError, match="ranks and layers"):
        data_parallel_step([], 0.0, 8, lambda size: 0.0)
    with pytest.raises(PlanningError, match="at least one rank, not 0"):
        data_parallel_step([Layer(1, 1.0)], 0.0, 8, lambda size: 0.0, sharing=0)
