"""Small blocks that were freed stay as they are for the next request of their size: see
csrc/memory/block_pool.h, Note [Kept blocks]."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.conftest import stats
from xpurt import _C

MIB = 1 << 20
LARGEST = 32 << 10
SMALL_SEGMENT = 2 * MIB


def free_sizes(pool: "_C.testing.BlockPool") -> list[int]:
    return [
        size for blocks in pool.segments() for _, size, active in blocks if not active
    ]


def test_a_kept_block_serves_the_next_request_of_its_size() -> None:
    pool = _C.testing.BlockPool(False)
    first, second, third = (pool.take(1000) for _ in range(3))
    assert pool.keep(first)
    assert pool.keep(third)
    assert pool.take(2000) not in (first, third)
    assert pool.take(513) == third
    assert pool.take(1024) == first
    assert pool.take(1024) not in (first, second, third)


def test_kept_blocks_are_merged_before_the_pool_grows() -> None:
    pool = _C.testing.BlockPool(False)
    addresses = [pool.take(LARGEST) for _ in range(SMALL_SEGMENT // LARGEST)]
    # Half of them are kept, and lie between the others.
    for address in addresses[::2]:
        assert pool.keep(address)
    for address in addresses[1::2]:
        assert not pool.keep(address)
    assert pool.take(MIB) in addresses
    assert pool.reserved == SMALL_SEGMENT


def test_large_blocks_are_not_kept() -> None:
    pool = _C.testing.BlockPool(False)
    assert not pool.keep(pool.take(LARGEST + 1))
    assert free_sizes(pool) == [SMALL_SEGMENT]


@given(data=st.data())
def test_random_sequences_keep_the_account(data: st.DataObject) -> None:
    pool = _C.testing.BlockPool(False)
    live: dict[int, int] = {}
    kept: set[int] = set()
    steps = st.sampled_from(["take", "take", "keep", "keep", "give back", "merge"])
    for _ in range(data.draw(st.integers(1, 60))):
        step = data.draw(steps)
        if step == "take":
            address = pool.take(data.draw(st.integers(1, 6000)))
            assert address not in live
            live[address] = 1
            kept.discard(address)
        elif step == "merge":
            pool.merge_kept()
            kept.clear()
        elif live:
            address = data.draw(st.sampled_from(sorted(live)))
            del live[address]
            if step == "keep" and pool.keep(address):
                kept.add(address)
            elif step == "give back":
                pool.give_back(address)
        active = set()
        for blocks in pool.segments():
            states = [state for _, _, state in blocks]
            assert all(a or b for a, b in pairwise(states))
            active |= {start for start, _, state in blocks if state}
        assert active == live.keys() | kept
        assert sum(size for b in pool.segments() for _, size, _ in b) == pool.reserved
    for address in live:
        pool.give_back(address)
    pool.merge_kept()
    assert all(len(blocks) == 1 for blocks in pool.segments())


@pytest.mark.usefixtures("memory")
def test_statistics_and_snapshots_show_merged_blocks() -> None:
    before = stats()
    addresses = [_C.testing.raw_allocate(1000) for _ in range(5)]
    for address in addresses[1:4]:
        _C.testing.raw_free(address)
    now = stats()
    assert now["active.all.current"] - before.get("active.all.current", 0) == 2
    assert now["inactive_split.all.current"] == 2
    assert now["inactive_split_bytes.all.current"] == SMALL_SEGMENT - 2 * 1024
    again = [_C.testing.raw_allocate(1000) for _ in range(3)]
    assert set(again) == set(addresses[1:4])
    for address in addresses:
        _C.testing.raw_free(address)
    (segment,) = _C.memory_snapshot()
    assert [block["state"] for block in segment["blocks"]] == ["inactive"]
    assert stats().get("inactive_split.all.current", 0) == 0


@pytest.mark.usefixtures("memory")
def test_kept_blocks_do_not_make_the_pool_grow() -> None:
    addresses = [_C.testing.raw_allocate(512) for _ in range(SMALL_SEGMENT // 512)]
    for address in addresses:
        _C.testing.raw_free(address)
    large = _C.testing.raw_allocate(MIB)
    assert stats()["reserved_bytes.all.current"] == SMALL_SEGMENT
    _C.testing.raw_free(large)


@pytest.mark.usefixtures("memory")
def test_kept_blocks_leave_with_the_cache() -> None:
    _C.testing.raw_free(_C.testing.raw_allocate(100))
    assert len(_C.memory_snapshot()) == 1
    _C.testing.raw_free(_C.testing.raw_allocate(100))
    # The fixture then checks that an emptied cache holds no segment.
