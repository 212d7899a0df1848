"""A device that got slower, from made-up times."""

import pytest

from xpurt import _C


def after(*ratios: float) -> _C.testing.Slowdown:
    made = _C.testing.Slowdown()
    for ratio in ratios:
        made.record(ratio / made.factor, 1_000.0)
    return made


def test_as_predicted_nothing_changes() -> None:
    made = _C.testing.Slowdown()
    for ratio in (1.0, 1.2, 0.8, 1.0, 1.3):
        assert not made.record(ratio, 1_000.0)
    assert (made.factor, made.wants_samples) == (1, False)


def test_one_late_sample_asks_for_more() -> None:
    made = _C.testing.Slowdown()
    assert made.record(3.0, 1_000.0)
    assert made.wants_samples
    assert made.factor == 1
    for _ in range(4):
        assert not made.record(1.0, 1_000.0)
    assert not made.wants_samples
    assert made.factor == 1


@pytest.mark.parametrize(
    ("ratio", "samples"), [(1.86, 4), (3.0, 4), (100.0, 4), (0.3, 2)]
)
def test_a_few_samples_settle_it(ratio: float, samples: int) -> None:
    made = after(*[ratio] * (samples - 1))
    assert made.factor == 1
    assert made.record(ratio, 1_000.0)
    assert made.factor == pytest.approx(ratio)
    assert not made.wants_samples


def test_it_passes() -> None:
    made = after(3.0, 3.0, 3.0, 3.0)
    assert made.factor == 3
    for _ in range(2):
        made.record(1 / made.factor, 1_000.0)
    assert made.factor == 1


def test_interruptions_of_many_samples_are_no_slowdown() -> None:
    """The median of the newest five is late again and again."""
    made = _C.testing.Slowdown()
    for late in [True, True, False, True, False] * 100:
        made.record((2.5 if late else 1.0) / made.factor, 1_000.0)
        assert made.factor == 1


def test_short_calls_and_unknown_costs_tell_nothing() -> None:
    made = _C.testing.Slowdown()
    for _ in range(10):
        assert not made.record(3.0, 30.0)
        assert not made.record(3.0, 1_000.0, is_known=False)
    assert (made.factor, made.wants_samples) == (1, False)


def test_a_suspicion_wants_a_few_samples() -> None:
    made = _C.testing.Slowdown()
    made.suspect()
    samples = 0
    while made.wants_samples:
        made.record(1.0, 10.0)  # short, so it tells nothing
        samples += 1
    assert 0 < samples < 10


def test_wrong_signs_are_ignored_ever_longer() -> None:
    made = _C.testing.Slowdown()
    samples = 0
    for _ in range(1_000):
        made.suspect()
        if made.wants_samples:
            made.record(1.0, 1_000.0)
            samples += 1
    assert samples < 50
