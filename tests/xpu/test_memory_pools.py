"""torch.xpu.MemPool: memory for the allocations of one block of code."""

import gc
import threading

import pytest
import torch

import xpurt
from xpurt import _C

MIB = 1 << 20


@pytest.fixture(autouse=True)
def initialized(xpu: torch.device) -> None:
    torch.xpu.init()  # PyTorch's layer shows no memory before


def pools_in_use() -> set[tuple[int, int]]:
    return {tuple(s["segment_pool_id"]) for s in torch.xpu.memory_snapshot()}


def test_ids_are_never_used_twice(xpu: torch.device) -> None:
    first, second = torch.xpu.MemPool(), torch.xpu.MemPool()
    assert first.id[0] == second.id[0] == 0
    assert second.id[1] > first.id[1] > 0
    other = torch._C._XPUMemPool(is_user_created=False)
    assert other.id[0] > 0
    assert other.id[1] == 0
    assert first.allocator is None


def test_memory_stays_in_its_pool(xpu: torch.device) -> None:
    torch.xpu.empty_cache()
    pool = torch.xpu.MemPool()
    outside = torch.empty(1000, device=xpu)
    with torch.xpu.use_mem_pool(pool):
        inside = torch.empty(1000, device=xpu)
    again = torch.empty(1000, device=xpu)
    (segment,) = pool.snapshot()
    assert segment["segment_pool_id"] == pool.id
    start, end = segment["address"], segment["address"] + segment["total_size"]
    assert start <= inside.data_ptr() < end
    for tensor in (outside, again):
        assert not start <= tensor.data_ptr() < end
    assert torch.xpu.memory_snapshot((0, 1 << 40)) == []
    assert {(0, 0), pool.id} <= pools_in_use()


def test_how_many_hold_a_pool(xpu: torch.device) -> None:
    pool = torch.xpu.MemPool()
    assert pool.use_count() == 1
    with torch.xpu.use_mem_pool(pool):
        assert pool.use_count() == 2
        with pytest.raises(RuntimeError, match="already"):
            torch._C._xpu_beginAllocateToPool(xpu.index, pool.id)
    assert pool.use_count() == 1


def test_its_memory_goes_back_with_it(xpu: torch.device) -> None:
    torch.xpu.empty_cache()
    before = torch.xpu.memory_reserved()
    pool = torch.xpu.MemPool()
    with torch.xpu.use_mem_pool(pool):
        tensor = torch.empty(3 * MIB, dtype=torch.uint8, device=xpu)
    assert torch.xpu.memory_reserved() == before + 20 * MIB
    del tensor
    torch.xpu.empty_cache()
    assert torch.xpu.memory_reserved() == before + 20 * MIB, "a pool in use keeps it"
    del pool
    gc.collect()
    assert torch.xpu.memory_reserved() == before


def test_a_tensor_outlives_its_pool(xpu: torch.device) -> None:
    torch.xpu.empty_cache()
    before = torch.xpu.memory_reserved()
    pool = torch.xpu.MemPool()
    with torch.xpu.use_mem_pool(pool):
        tensor = torch.arange(1000, device=xpu)
    del pool
    gc.collect()
    assert int(tensor.sum()) == 499_500
    del tensor
    torch.xpu.empty_cache()
    assert torch.xpu.memory_reserved() == before


def test_only_the_thread_that_asked(xpu: torch.device) -> None:
    pool = torch.xpu.MemPool()
    others: list[torch.Tensor] = []

    def allocate() -> None:
        others.append(torch.empty(1000, device=xpu))

    with torch.xpu.use_mem_pool(pool):
        thread = threading.Thread(target=allocate)
        thread.start()
        thread.join()
    assert pool.snapshot() == []
    torch._C._xpu_beginAllocateToPool(xpu.index, pool.id)
    try:
        thread = threading.Thread(target=allocate)
        thread.start()
        thread.join()
    finally:
        torch._C._xpu_endAllocateToPool(xpu.index, pool.id)
        torch._C._xpu_releasePool(xpu.index, pool.id)
    assert len(pool.snapshot()) == 1


def test_a_pool_lends_where_memory_is_out(xpu: torch.device) -> None:
    torch.xpu.empty_cache()
    home = torch.xpu.mem_get_info()[1]
    lends, keeps = torch.xpu.MemPool(use_on_oom=True), torch.xpu.MemPool()
    for pool in (lends, keeps):
        with torch.xpu.use_mem_pool(pool):
            _ = torch.empty(30 * MIB, dtype=torch.uint8, device=xpu)
            del _
    torch.xpu.set_per_process_memory_fraction(torch.xpu.memory_reserved() / home)
    try:
        borrowed = torch.empty(30 * MIB, dtype=torch.uint8, device=xpu)
        (segment,) = lends.snapshot()
        assert borrowed.data_ptr() == segment["address"]
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(30 * MIB, dtype=torch.uint8, device=xpu)
    finally:
        torch.xpu.set_per_process_memory_fraction(1.0)


def test_a_pool_of_a_replaced_mapping() -> None:
    with xpurt.xpu_mapping("CPU"):
        pool = torch.xpu.MemPool()
        with torch.xpu.use_mem_pool(pool):
            torch.empty(1000, device="xpu")
    with (
        xpurt.xpu_mapping("explicit"),
        pytest.raises(RuntimeError, match="mapping that has been replaced"),
        torch.xpu.use_mem_pool(pool),
    ):
        pass
    del pool
    assert _C.live_memory() == (0, 0)


def test_the_numbers_of_a_device_that_is_not_the_current_one() -> None:
    with xpurt.xpu_mapping("explicit"), torch.xpu.device(1):
        before = [torch.xpu.memory_allocated(index) for index in (0, 1)]
        held = torch.empty(1 << 20, device="xpu:0")
        after = [torch.xpu.memory_allocated(index) for index in (0, 1)]
        assert [b - a for a, b in zip(before, after, strict=True)] == [held.nbytes, 0]
        del held


def test_two_devices() -> None:
    with xpurt.xpu_mapping("explicit"):
        pool = torch.xpu.MemPool()
        with torch.xpu.use_mem_pool(pool, device=1):
            first = torch.empty(10, device="xpu:0")
            second = torch.empty(10, device="xpu:1")
        assert [s["device"] for s in pool.snapshot()] == [1]
        del first, second
    with pytest.raises(TypeError, match="allocator of a MemPool"):
        torch.xpu.MemPool("driver")  # type: ignore[arg-type]
