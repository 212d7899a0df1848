"""Models that do not fit into a device's memory, simulated."""

import random
from dataclasses import replace

import pytest

from xpurt.errors import PlanningError
from xpurt.mapping import WeightOp, fleets, run_larger_model

MIB = float(1 << 20)
LINK = 10e3
HOME = replace(fleets.CPU, flops_per_us=2e5, bytes_per_us=20e3)
CARD = replace(
    fleets.CARDS[0], flops_per_us=4e6, bytes_per_us=200e3, link_bytes_per_us=LINK
)


def layers(count: int, flops: float = 1.0, first: int = 0) -> list[WeightOp]:
    return [WeightOp(first + n, 4 * MIB, flops, 4096.0) for n in range(count)]


@pytest.mark.parametrize("room", [6, 12, 22])
def test_what_has_no_room_is_computed_at_home(room: int) -> None:
    card = replace(CARD, memory_bytes=room * 4 * MIB)
    rounds = [layers(24)] * 16
    auto = run_larger_model(rounds, HOME, card)
    assert auto.moved_bytes < 4 * MIB
    assert auto.at_home == pytest.approx((24 - room) / 24, abs=0.1)
    others = ("home", "streaming", "first layers")
    for policy in others:
        assert auto.us < run_larger_model(rounds, HOME, card, policy).us


def test_what_has_no_room_is_copied_where_that_is_faster() -> None:
    card = replace(CARD, memory_bytes=12 * 4 * MIB)
    slow = replace(HOME, bytes_per_us=2e3)
    rounds = [layers(24)] * 16
    auto = run_larger_model(rounds, slow, card)
    # The copy for the next op takes the room of one that would stay.
    assert auto.moved_bytes / (4 * MIB) == pytest.approx(12, abs=1)
    streaming = run_larger_model(rounds, slow, card, "streaming")
    assert auto.us <= 1.02 * streaming.us


def test_those_stay_that_gain_most() -> None:
    card = replace(CARD, memory_bytes=12 * 4 * MIB)
    heavy = layers(12, flops=1.3e8, first=100)
    rounds = [[op for pair in zip(layers(12), heavy, strict=True) for op in pair]] * 16
    auto = run_larger_model(rounds, HOME, card)
    # All of the heavy ones, and no other.
    assert auto.moved_bytes < 4 * MIB
    assert auto.at_home == pytest.approx(0.5, abs=0.05)


def test_experts_that_are_chosen_often_stay() -> None:
    card = replace(CARD, memory_bytes=8 * 4 * MIB)
    chooses = random.Random(0)
    experts = layers(32)
    often = [1 / 8] * 4 + [1 / 56] * 28
    rounds = [chooses.choices(experts, often, k=4) for _ in range(200)]
    auto = run_larger_model(rounds, HOME, card)
    assert auto.moved_bytes / (4 * MIB) < 1
    assert auto.at_home < 0.5


def test_bad_input_is_refused() -> None:
    rounds = [layers(2)] * 2
    with pytest.raises(PlanningError, match="policy 'lru' is unknown; there are auto"):
        run_larger_model(rounds, HOME, CARD, "lru")
    with pytest.raises(PlanningError, match="two rounds of ops, and more"):
        run_larger_model(rounds[:1], HOME, CARD)
    with pytest.raises(PlanningError, match="a weight of 4,194,304 bytes has no room"):
        run_larger_model(rounds, HOME, replace(CARD, memory_bytes=MIB))
