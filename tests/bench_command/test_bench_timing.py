"""Interleaving, counts and ratios, by a clock that the calls themselves move."""

import gc

import pytest

from xpurt_tools.bench import timing
from xpurt_tools.bench.timing import Budget, Side, Times, interleaved, ratio_of


class Clock:
    """Time that passes only where a side works."""

    def __init__(self) -> None:
        self.now = 0.0
        self.done: list[str] = []

    def __call__(self) -> float:
        return self.now

    def side(self, name: str, *seconds: float) -> Side:
        """A side whose calls take these times, over and over."""
        calls = 0

        def call() -> None:
            nonlocal calls
            self.now += seconds[calls % len(seconds)]
            self.done.append(name)
            calls += 1

        return Side(name, call)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_sides_take_turns(clock: Clock) -> None:
    sides = [clock.side("a", 1.0), clock.side("b", 2.0)]
    times = interleaved(sides, Budget(seconds=2.5, fewest=3, most=9), clock)
    assert [each.seconds for each in times] == [(1.0,) * 3, (2.0,) * 3]
    assert clock.done == [*"aabb", *"ababab"]  # two calls each that do not count


def test_a_short_call_is_timed_in_batches(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests = []
    monkeypatch.setattr(timing.time, "sleep", rests.append)
    short = timing.BATCH_S / 100
    (times,) = interleaved(
        [clock.side("a", short)], Budget(seconds=5e-3, fewest=2, most=9), clock
    )
    assert times.median == pytest.approx(short)
    assert len(times.seconds) == 2
    assert len(rests) == 2
    warm_up = 1 + 1 + 3 + 10
    lead_in = pytest.approx(timing.LEAD_IN_S / short, abs=1)
    assert (len(clock.done) - warm_up - 2 * 100) / 2 == lead_in


def test_a_budget_is_spent_and_not_more(clock: Clock) -> None:
    (times,) = interleaved(
        [clock.side("a", 1.0)], Budget(seconds=5, fewest=1, most=100), clock
    )
    assert len(times.seconds) == 5
    (times,) = interleaved(
        [clock.side("a", 1.0)], Budget(seconds=5, fewest=1, most=4), clock
    )
    assert len(times.seconds) == 4


def test_a_slow_row_stops_before_its_fewest_rounds(clock: Clock) -> None:
    (times,) = interleaved(
        [clock.side("a", 1.0)], Budget(seconds=0.5, fewest=10, most=100), clock
    )
    assert len(times.seconds) == 2


def test_what_was_submitted_is_part_of_the_time(clock: Clock) -> None:
    def finish() -> None:
        clock.now += 3.0

    side = Side("a", lambda: None, finish)
    (times,) = interleaved([side], Budget(seconds=0, fewest=1, most=1), clock)
    assert times.seconds == (3.0,)


def test_garbage_waits_and_is_collected_again_after_an_error() -> None:
    seen = []

    def call() -> None:
        seen.append(gc.isenabled())
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        interleaved([Side("a", call)], Budget(seconds=0, fewest=1, most=1))
    assert seen == [False]
    assert gc.isenabled()


def test_a_ratio_is_of_medians_and_its_spread_of_rounds() -> None:
    ratio = ratio_of(
        Times((1.0, 2.0, 3.0, 4.0, 100.0)), Times((2.0, 2.0, 2.0, 2.0, 2.0))
    )
    assert (ratio.value, ratio.low, ratio.high) == (1.5, 1.0, 2.0)


def test_one_round_has_no_spread() -> None:
    ratio = ratio_of(Times((1.0,)), Times((2.0,)))
    assert (ratio.value, ratio.low, ratio.high) == (0.5, 0.5, 0.5)


def test_calls_go_on_for_so_long(clock: Clock) -> None:
    timing.go_on(clock.side("a", 1.0, 2.0), 4.0, clock)
    assert (clock.now, clock.done) == (4.0, ["a"] * 3)


def test_disturbed_rounds_are_taken_again(clock: Clock) -> None:
    loads = iter([2.0, 1.0, 1.5, 1.0, 1.1])
    (times,) = interleaved(
        [clock.side("a", 1.0)],
        Budget(seconds=2, fewest=3, most=9),
        clock,
        lambda: next(loads),
    )
    assert len(times.seconds) == 3  # of five
    assert times.load == 1.0


def test_a_machine_that_is_never_quiet_gives_its_load(clock: Clock) -> None:
    (times,) = interleaved(
        [clock.side("a", 1.0)],
        Budget(seconds=1, fewest=3, most=9),
        clock,
        lambda: 1.7,
    )
    assert len(times.seconds) == 4 * timing.PATIENCE
    assert times.load == 1.7
