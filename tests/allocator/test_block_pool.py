"""The pools alone, over made-up addresses."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xpurt import _C

MIB = 1 << 20
SMALL_SIZES = st.integers(1, MIB)
LARGE_SIZES = st.integers(MIB + 1, 64 * MIB)


def rounded(size: int) -> int:
    return max(512, -(-size // 512) * 512)


def check_segments(pool: "_C.testing.BlockPool", live: dict[int, int]) -> None:
    """Blocks tile their segments, live ones are the expected, free ones are merged."""
    found = {}
    for blocks in pool.segments():
        address = blocks[0][0]
        for start, size, active in blocks:
            assert start == address
            assert size % 512 == 0
            address += size
            if active:
                found[start] = size
        states = [active for _, _, active in blocks]
        assert all(a or b for a, b in pairwise(states))
    assert found.keys() == live.keys()
    for start, size in live.items():
        assert found[start] >= rounded(size)
    in_use = sum(found.values())
    free = sum(s for b in pool.segments() for _, s, active in b if not active)
    assert in_use + free == pool.reserved


def check_remainders(pool: "_C.testing.BlockPool") -> None:
    split = [
        size
        for blocks in pool.segments()
        if len(blocks) > 1
        for _, size, active in blocks
        if not active
    ]
    assert pool.inactive_split == (len(split), sum(split))


@pytest.mark.parametrize(
    ("large", "sizes"), [(False, SMALL_SIZES), (True, LARGE_SIZES)]
)
@given(data=st.data())
def test_random_sequences_keep_the_account(
    large: bool, sizes: st.SearchStrategy[int], data: st.DataObject
) -> None:
    pool = _C.testing.BlockPool(large)
    live: dict[int, int] = {}
    for _ in range(data.draw(st.integers(1, 30))):
        step = data.draw(st.sampled_from(["take", "take", "give back", "drop"]))
        if step == "take":
            size = data.draw(sizes)
            address = pool.take(size)
            assert address not in live
            live[address] = size
        elif step == "give back" and live:
            address = data.draw(st.sampled_from(sorted(live)))
            pool.give_back(address)
            del live[address]
        elif step == "drop":
            pool.drop_free_segments()
        check_segments(pool, live)
        check_remainders(pool)
    for address in live:
        pool.give_back(address)
    assert all(len(blocks) == 1 for blocks in pool.segments())
    assert pool.drop_free_segments() >= 0
    assert pool.reserved == 0


def test_the_smallest_block_that_fits_is_taken() -> None:
    pool = _C.testing.BlockPool(False)
    addresses = [pool.take(size) for size in (4096, 512, 2048, 512, 8192, 512)]
    for address in addresses[::2]:
        pool.give_back(address)
    assert pool.take(1500) == addresses[2]
    assert pool.take(3000) == addresses[0]
    assert pool.take(8192) == addresses[4]


def test_of_equal_blocks_that_of_the_oldest_segment_is_taken() -> None:
    pool = _C.testing.BlockPool(True)
    addresses = [pool.take(10 * MIB) for _ in range(4)]
    assert addresses != sorted(addresses)  # else this tests nothing
    for address in addresses:
        pool.give_back(address)
    assert [pool.take(10 * MIB) for _ in range(4)] == addresses


@pytest.mark.parametrize(
    ("size", "segment"),
    [
        (1, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 1, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 1, 12 * MIB),
    ],
)
def test_segment_sizes(size: int, segment: int) -> None:
    pool = _C.testing.BlockPool(size > MIB)
    pool.take(size)
    assert pool.reserved == segment


def test_small_tails_of_large_blocks_stay_with_them() -> None:
    pool = _C.testing.BlockPool(True)
    pool.take(11 * MIB)  # of 12 MiB
    assert [size for _, size, _ in pool.segments()[0]] == [12 * MIB]
    pool.take(11 * MIB - 512)  # leaves 1 MiB + 512
    assert [size for _, size, _ in pool.segments()[1]] == [11 * MIB - 512, MIB + 512]


@pytest.mark.parametrize("seed", range(3))
def test_a_repeated_trace_reserves_nothing_more(seed: int) -> None:
    pool = _C.testing.BlockPool(False)
    peaks = []
    for _ in range(3):
        choose = random.Random(seed)
        live = []
        for _ in range(500):
            live.append(pool.take(choose.choice([100, 3000, 70_000, 500_000])))
            if len(live) > 40:
                pool.give_back(live.pop(choose.randrange(len(live))))
        for address in live:
            pool.give_back(address)
        peaks.append(pool.reserved)
    assert peaks[0] == peaks[2]
