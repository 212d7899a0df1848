"""Memory that only a private pool's users get."""

import threading

import pytest
import torch

from allocator.conftest import stats
from xpurt import _C

POOL = (0, 4711)
pytestmark = pytest.mark.usefixtures("memory")


def test_memory_does_not_cross_the_border() -> None:
    outside = _C.testing.raw_allocate(1000)
    _C.begin_allocate_to_pool(0, POOL, this_thread_only=True)
    inside = _C.testing.raw_allocate(1000)
    _C.testing.raw_free(outside)
    also_inside = _C.testing.raw_allocate(1000)
    _C.end_allocate_to_pool(0, POOL)
    _C.testing.raw_free(inside)
    outside_again = _C.testing.raw_allocate(1000)
    assert outside_again == outside
    assert also_inside not in (outside, inside)
    pools = {tuple(s["segment_pool_id"]) for s in _C.memory_snapshot()}
    assert pools == {(0, 0), POOL}
    assert stats()["reserved_bytes.all.current"] == 2 * (2 << 20)
    _C.testing.raw_free(also_inside)
    _C.testing.raw_free(outside_again)
    _C.release_pool(0, POOL)


def test_emptying_the_cache_leaves_a_pool_in_use() -> None:
    _C.begin_allocate_to_pool(0, POOL, this_thread_only=True)
    _C.testing.raw_free(_C.testing.raw_allocate(1000))
    _C.end_allocate_to_pool(0, POOL)
    torch._C._accelerator_emptyCache()
    assert len(_C.memory_snapshot()) == 1
    _C.testing.empty_pool(POOL)
    assert _C.memory_snapshot() == []
    _C.release_pool(0, POOL)
    with pytest.raises(RuntimeError, match="no memory pool"):
        _C.release_pool(0, POOL)


@pytest.mark.parametrize("this_thread_only", [True, False])
def test_of_one_thread_or_of_all(this_thread_only: bool) -> None:
    _C.begin_allocate_to_pool(0, POOL, this_thread_only=this_thread_only)
    addresses: list[int] = []
    thread = threading.Thread(
        target=lambda: addresses.append(_C.testing.raw_allocate(1000))
    )
    thread.start()
    thread.join()
    _C.end_allocate_to_pool(0, POOL)
    (segment,) = _C.memory_snapshot()
    assert segment["segment_pool_id"] == ((0, 0) if this_thread_only else POOL)
    _C.testing.raw_free(addresses[0])
    _C.release_pool(0, POOL)


def test_begin_twice_and_end_once_too_often() -> None:
    _C.begin_allocate_to_pool(0, POOL, this_thread_only=True)
    with pytest.raises(RuntimeError, match="already"):
        _C.begin_allocate_to_pool(0, POOL, this_thread_only=True)
    _C.end_allocate_to_pool(0, POOL)
    with pytest.raises(RuntimeError, match="no allocations go"):
        _C.end_allocate_to_pool(0, POOL)
    _C.release_pool(0, POOL)
    with pytest.raises(ValueError, match="pool of everybody"):
        _C.begin_allocate_to_pool(0, (0, 0), this_thread_only=True)
