"""The division of ops among devices: the code that the scheduler and the simulator
share."""

import math

import pytest

from xpurt import _C

NOWHERE = math.inf


def divided(
    queue: list[float],
    launch: list[float],
    whole: list[float],
    alone_us: float | None = None,
    copies: list[float] | None = None,
    in_shards: bool = False,
    regret: _C.CopyRegret | None = None,
    boundary: _C.Boundary | None = None,
    sums: list[float] | None = None,
) -> list[float]:
    alone = [q + each + w for q, each, w in zip(queue, launch, whole, strict=True)]
    return _C.divide_call(
        queue,
        launch,
        copies or [0.0] * len(queue),
        whole,
        min(alone) if alone_us is None else alone_us,
        in_shards,
        regret or _C.CopyRegret(),
        boundary or _C.Boundary(),
        sums or [],
    )


def test_all_devices_end_at_the_same_time() -> None:
    assert divided([0, 0], [0, 0], [10, 30]) == pytest.approx([0.75, 0.25])
    # 1 + 10 x = 3 + 10 (1 - x)
    assert divided([0, 2], [1, 1], [10, 10]) == pytest.approx([0.6, 0.4])
    assert divided([0, 0, 0], [0, 0, 0], [4, 4, 4]) == pytest.approx([1 / 3] * 3)


def test_a_device_that_is_not_worth_a_launch_gets_nothing() -> None:
    assert divided([0, 0, 0], [1, 1, 1], [20, 20, 5000]) == [0.5, 0.5, 0]
    assert divided([0, 0, 0], [0, 0, 30], [20, 20, 20]) == [0.5, 0.5, 0]
    assert divided([0, 0], [0, 0], [10, NOWHERE]) == []


def test_of_many_equal_devices_each_has_a_part() -> None:
    assert divided([0] * 64, [0] * 64, [640] * 64) == pytest.approx([1 / 64] * 64)
    # Slow devices beside a fast one add up, too.
    parts = divided([0] * 64, [1] * 64, [1000, *[20_000] * 63])
    assert all(part > 0 for part in parts)


def test_the_last_device_ends_as_early_as_whole_rows_allow() -> None:
    # 2.37 rows each: rounded up, a device would take 1.27 of the time.
    slow = 1 / 27
    rows = _C.units_for([1 - 7 * slow, *[slow] * 7], 64)
    assert rows == [50, *[2] * 7]
    assert _C.units_for([0.5, 0.5], 5) == [3, 2]
    assert _C.units_for([0.1, 0.2, 0.7], 10) == [1, 2, 7]
    assert _C.units_for([0.0, 1.0], 3) == [0, 3]


def test_a_part_takes_longer_than_its_launch() -> None:
    # By the ends alone, the third device would compute 12 in a launch of 20.
    assert divided([0] * 3, [0, 0, 20], [64] * 3) == [0.5, 0.5, 0]
    assert divided([0] * 3, [0, 0, 10], [64] * 3)[2] > 0


def test_partial_sums_are_added_one_after_the_other() -> None:
    """n devices take 100 / n, and n - 1 additions."""
    parts = divided([0] * 64, [0] * 64, [100] * 64, sums=[1] * 64)
    assert sum(part > 0 for part in parts) == 10
    # 5 of 10 are gained.
    assert divided([0, 0], [0, 0], [10, 10], sums=[3, 3]) == pytest.approx([0.5, 0.5])
    assert divided([0, 0], [0, 0], [10, 10], sums=[5, 5]) == []


def test_a_boundary_counts_the_additions_too() -> None:
    boundary, regret = _C.Boundary(), _C.CopyRegret()
    chain = {"boundary": boundary, "regret": regret, "in_shards": True}
    assert divided([0, 0], [0, 0], [10, 10], **chain) == pytest.approx([0.5, 0.5])
    assert divided([0, 0], [0, 0], [10, 10], sums=[6, 6], **chain) == []


def test_it_has_to_pay() -> None:
    assert divided([0, 0], [0, 0], [10, 80]) == pytest.approx([8 / 9, 1 / 9])
    assert divided([0, 0], [0, 0], [10, 200]) == []


def test_what_is_pending_takes_no_part_in_the_gain() -> None:
    """Behind a queue of 1000, an op of 10 gains 5: next to nothing of the end."""
    assert divided([1000, 1000], [0, 0], [10, 10]) == pytest.approx([0.5, 0.5])


def test_a_copy_that_stays_is_made_once_it_has_paid() -> None:
    """Each call without the copy loses 5, and the copy takes 18."""
    regret = _C.CopyRegret()
    calls = [
        divided([0, 0], [0, 0], [10, 10], copies=[0, 18], regret=regret)
        for _ in range(4)
    ]
    assert calls == [[], [], [], pytest.approx([0.5, 0.5])]


def test_copies_in_vain_get_rare() -> None:
    regret = _C.CopyRegret()
    made = [
        bool(divided([0, 0], [0, 0], [10, 10], copies=[0, 18], regret=regret))
        for _ in range(200)
    ]
    assert 2 <= sum(made) <= 6  # after 4, 8, 16, ... calls
    assert not any(made[100:110])
    # They stay after all.
    assert divided([0, 0], [0, 0], [10, 10], regret=regret)
    again = [
        bool(divided([0, 0], [0, 0], [10, 10], copies=[0, 18], regret=regret))
        for _ in range(4)
    ]
    assert any(again)


def test_a_chain_is_divided_as_if_it_were_one_op() -> None:
    """Long ops that suit the first device, short ones that suit the second. The chain's
    sums are 110 and 140."""
    boundary = _C.Boundary()
    for _ in range(50):
        divided([0, 0], [0, 0], [100, 100], boundary=boundary)
        found = divided([0, 0], [0, 0], [10, 40], in_shards=True, boundary=boundary)
    assert found[0] == pytest.approx(140 / 250, abs=0.015)


def test_a_boundary_stays_until_moving_it_pays() -> None:
    boundary = _C.Boundary()
    first = divided([0, 0], [0, 0], [10, 10], boundary=boundary)
    for whole in ([10, 10.3], [10.2, 10], [10, 10.2], [10.3, 10]):
        assert (
            divided([0, 0], [0, 0], whole, in_shards=True, boundary=boundary) == first
        )
    slower = [
        divided([0, 0], [0, 0], [10, 30], in_shards=True, boundary=boundary)
        for _ in range(40)
    ]
    assert slower[-1][0] == pytest.approx(0.75, abs=0.02)
    # It moves in a few steps, not with each op.
    assert 1 <= len({tuple(each) for each in slower}) <= 12


def test_a_long_queue_does_not_tear_a_chain_apart() -> None:
    """The second device is behind by more than the op takes. By itself the op would run
    on the first one, which would have to gather the operands."""
    boundary = _C.Boundary()
    divided([0, 0], [0, 0], [100, 100], boundary=boundary)
    assert divided([0, 50], [0, 0], [10, 10]) == []
    assert divided(
        [0, 50], [0, 0], [10, 10], alone_us=80, in_shards=True, boundary=boundary
    ) == [0.5, 0.5]
    # Without data to gather, waiting for the second device would be slower.
    assert (
        divided([0, 50], [0, 0], [10, 10], 10, in_shards=True, boundary=boundary) == []
    )


def test_a_device_that_got_slow_leaves_the_chain() -> None:
    boundary = _C.Boundary()
    divided([0, 0], [0, 0], [10, 10], boundary=boundary)
    # Gathering takes long, but the chain is faster without the second device.
    found = [
        divided([0, 0], [0, 0], [10, 2000], 1500, in_shards=True, boundary=boundary)
        for _ in range(60)
    ]
    assert found[-1] == []


def test_bad_times_are_refused() -> None:
    with pytest.raises(ValueError, match="five times of each device"):
        divided([0, 0], [0, 0], [1, 1], 1, copies=[0])
    with pytest.raises(ValueError, match="negative"):
        divided([0, -1], [0, 0], [1, 1], 1)
    with pytest.raises(ValueError, match="`whole` is 0"):
        divided([0, 0], [0, 0], [0, 1], 1)


def waits(lost: _C.LostDivision, divided_us: float, most: int = 100_000) -> int:
    """Calls of 100 us that are not divided before the next trial."""
    return next(n for n in range(most) if lost.is_due(100.0, divided_us))


def test_a_division_that_lost_is_tried_again_once_a_trial_is_cheap() -> None:
    """Four calls that lose 900 each are 5% of 72,000: 720 calls of 100."""
    lost = _C.LostDivision()
    assert waits(lost, 1000.0) == 719
    assert waits(lost, 1000.0) == 1439  # each lost trial doubles the wait
    assert waits(_C.LostDivision(), 100.0) < 5  # nothing is expected to be lost


def test_a_division_that_pays_ends_the_doubling() -> None:
    lost = _C.LostDivision()
    for _ in range(3):
        waits(lost, 1000.0)
    lost.pay_off()
    assert waits(lost, 1000.0) == 719


def test_times_of_whole_calls_tell_what_to_try_again() -> None:
    """The second device's shards were slow, its whole calls are not."""

    def proportions(of_whole_calls: list[float]) -> list[float]:
        lost = _C.LostDivision()
        found = (
            _C.divide_again([0, 0], [100, 5000], of_whole_calls, 100.0, lost)
            for _ in range(10_000)
        )
        return next(filter(None, found), [])

    assert proportions([100, 100]) == [0.5, 0.5]
    assert proportions([100, 5000]) == []  # slow as a whole, too: no trial


def test_what_a_shard_begins_with_is_not_scaled() -> None:
    """A launch of 15 and a thirty-second of 3200: not 3680."""
    assert _C.whole_us_of(115.0, 15.0, 1 / 32) == 3200.0
    assert _C.whole_us_of(10.0, 15.0, 0.5) == 2.0  # shorter than a launch is believed
