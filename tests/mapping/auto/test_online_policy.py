"""The decision for each op, with made-up numbers."""

import random

import numpy as np
import pytest

from xpurt import _C

NOWHERE = float("inf")


def test_the_earliest_finish_is_chosen_and_the_lower_index_of_equals() -> None:
    policy = _C.OnlinePolicy(3)
    assert policy.choose([0, 0, 0], [0, 0, 0], [3, 2, 2], [0, 0, 0]) == 1
    # Everything so far would have ended at 4 on device 1 alone.
    assert policy.choose([0, 2, 0], [0, 0, 0], [3, 2, 2], [0, 0, 0]) == 2
    assert policy.choose([0, 2, 2], [0, 9, 9], [3, 2, 2], [0, 0, 0]) == 0


def test_an_op_that_gains_less_than_its_way_back_stays() -> None:
    policy = _C.OnlinePolicy(2)
    assert policy.choose([0, 0], [0, 0], [10, 11], [5, 5]) == 0
    # Done elsewhere at 11, and back at 16; here at 20. And back at 21.
    assert policy.choose([10, 0], [0, 0], [10, 11], [5, 5]) == 1
    policy = _C.OnlinePolicy(2)
    policy.choose([0, 0], [0, 0], [10, 11], [5, 5])
    assert policy.choose([10, 0], [0, 0], [10, 11], [5, 10]) == 0


def test_an_op_goes_where_it_can_run() -> None:
    policy = _C.OnlinePolicy(2)
    for _ in range(5):
        assert policy.choose([0, 50], [0, 50], [NOWHERE, 9], [0, 1e9]) == 1


def test_what_a_device_cannot_run_costs_it_what_another_needs() -> None:
    policy = _C.OnlinePolicy(2)
    policy.choose([0, 0], [0, 0], [NOWHERE, 9], [0, 0])
    policy.choose([0, 0], [0, 0], [1, 4], [0, 0])
    assert policy.alone == [10, 13]


def test_clocks_of_a_device_alone_do_not_stay_behind_the_present() -> None:
    policy = _C.OnlinePolicy(2)
    policy.choose([0, 0], [0, 0], [1, 2], [0, 0], now=100)
    assert policy.alone == [101, 102]


def test_nothing_is_done_in_the_past() -> None:
    policy = _C.OnlinePolicy(2)
    # Device 1 was free for longer, but it is as late there by now.
    assert policy.choose([90, 10], [0, 0], [5, 6], [0, 0], now=100) == 0


def test_the_account_begins_anew_when_all_devices_are_idle() -> None:
    policy = _C.OnlinePolicy(2)
    for _ in range(100):
        policy.choose([0, 0], [0, 0], [10, 10], [0, 0])
    assert policy.alone == [1000, 1000]
    policy.choose([510, 505], [0, 0], [10, 10], [0, 0], now=505)
    assert policy.alone == [1010, 1010]
    policy.choose([600, 600], [0, 0], [10, 10], [0, 0], now=600, is_idle=True)
    assert policy.alone == [610, 610]


def test_what_the_mix_may_lose_is_not_lost_again_and_again() -> None:
    policy = _C.OnlinePolicy(2)
    policy.remember([10_000, 10_000])  # 10 may be lost
    went = []
    for now in (0, 100, 200, 300):
        idle = [now, now]
        policy.choose(idle, [now, now], [10, 10], [0, 0], now=now, is_idle=True)
        busy = [now + 10, now]
        second = policy.choose(busy, [now, now], [10, 10], [15, 15], now=now)
        went.append(second)
        # Takes both results: here at 21, or at 26 if one has to come back.
        back = now + 25 if second else now + 20
        busy = [now + 10 + 10 * (second == 0), now + 10]
        assert policy.choose(busy, [back, now + 99], [1, 1], [0, 0], now=now) == 0
    assert went == [1, 1, 0, 0]


def test_the_best_device_changes_only_where_that_pays() -> None:
    policy = _C.OnlinePolicy(2)
    policy.remember([100, 110])
    assert policy.best_alone == 0
    policy.choose([0, 0], [0, 0], [20, 4], [50, 50])
    assert policy.best_alone == 0  # 120 against 114: less than 5%
    policy.choose([0, 0], [0, 0], [20, 4], [50, 50])
    assert policy.best_alone == 0  # 140 against 118, but 50 for the transfer
    for _ in range(4):
        policy.choose([0, 0], [0, 0], [20, 4], [50, 50])
    assert policy.best_alone == 1


def test_what_was_remembered_lets_the_mix_be_behind_a_little() -> None:
    strict, relaxed = _C.OnlinePolicy(2), _C.OnlinePolicy(2)
    relaxed.remember([10_000, 10_000])
    for policy, second in ((strict, 0), (relaxed, 1)):
        assert policy.choose([0, 0], [0, 0], [10, 10], [15, 15]) == 0
        # Done at 10 and back at 25, where device 0 alone would be done at 20.
        assert policy.choose([10, 0], [0, 0], [10, 10], [15, 15]) == second


def test_bad_candidates_are_refused() -> None:
    with pytest.raises(ValueError, match="needs a device"):
        _C.OnlinePolicy(0)
    policy = _C.OnlinePolicy(2)
    with pytest.raises(ValueError, match="one candidate per device"):
        policy.choose([0], [0, 0], [1, 1], [0, 0])
    with pytest.raises(ValueError, match="was given the work of 3"):
        policy.remember([1, 2, 3])
    with pytest.raises(ValueError, match="is no time"):
        policy.remember([1, -2])
    with pytest.raises(ValueError, match="no device can run"):
        policy.choose([0, 0], [0, 0], [NOWHERE, NOWHERE], [0, 0])


@pytest.mark.parametrize("seed", range(20))
def test_the_mix_is_never_behind_the_best_device_alone(seed: int) -> None:
    """A chain with side branches, on a fast device and slow ones far away."""
    draw = random.Random(seed)
    devices = draw.randint(2, 5)
    slowness = np.array([1.0, *(draw.uniform(1.1, 4) for _ in range(devices - 1))])
    policy = _C.OnlinePolicy(devices)
    free_at = np.zeros(devices)
    done: list[tuple[int, float, float]] = []  # device, finish, size
    alone = 0.0
    for _ in range(400):
        size, work = draw.uniform(0, 20), draw.uniform(1, 10)
        parents = draw.sample(done[-6:], min(len(done[-6:]), draw.randint(0, 2)))
        ready_at = [
            max((at + moved * (d != there) for there, at, moved in parents), default=0)
            for d in range(devices)
        ]
        cost = work * slowness
        where = policy.choose(free_at, ready_at, cost, np.full(devices, size))
        free_at[where] = max(free_at[where], ready_at[where]) + cost[where]
        done.append((where, free_at[where], size))
        alone += work
        assert free_at.max() <= alone * 1.001
