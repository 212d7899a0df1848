"""A block is not handed out again while queued work may still touch it."""

from collections.abc import Callable

import dpctl
import pytest
import torch

from allocator.conftest import is_complete, stats
from xpurt import _C

Busy = Callable[[torch.Stream, int], dpctl.SyclEvent]
MIB = 1 << 20


@pytest.mark.usefixtures("memory")
def test_a_freed_block_comes_back_on_its_stream() -> None:
    first = _C.testing.raw_allocate(1000)
    _C.testing.raw_free(first)
    second = _C.testing.raw_allocate(1000)
    _C.testing.raw_free(second)
    assert first == second


@pytest.mark.usefixtures("memory")
def test_but_not_on_another_stream() -> None:
    first = _C.testing.raw_allocate(1000)
    _C.testing.raw_free(first)
    with torch.Stream("xpu"):
        second = _C.testing.raw_allocate(1000)
    _C.testing.raw_free(second)
    assert first != second
    assert len(_C.memory_snapshot()) == 2


@pytest.mark.usefixtures("memory")
def test_neighbours_are_merged() -> None:
    addresses = [_C.testing.raw_allocate(MIB // 2) for _ in range(4)]
    assert len(_C.memory_snapshot()) == 1
    for i in (0, 2, 1, 3):
        _C.testing.raw_free(addresses[i])
    (segment,) = _C.memory_snapshot()
    assert [block["size"] for block in segment["blocks"]] == [2 * MIB]


def test_a_block_used_by_another_stream_waits_for_it(busy: Busy) -> None:
    other = torch.Stream("xpu")
    first = _C.testing.raw_allocate(1000)
    work = busy(other, first)
    _C.testing.raw_record_stream(first, other.stream_id, 0)
    _C.testing.raw_free(first)
    second = _C.testing.raw_allocate(1000)
    assert not is_complete(work), "the work ended too soon for the test"
    assert second != first
    now = stats()
    assert now["allocated_bytes.all.current"] == 1024
    assert now["active_bytes.all.current"] == 2048
    states = [block["state"] for block in _C.memory_snapshot()[0]["blocks"]]
    assert states == ["active_pending_free", "active_allocated", "inactive"]
    other.synchronize()
    third = _C.testing.raw_allocate(1000)
    _C.testing.raw_free(second)
    _C.testing.raw_free(third)
    assert third == first


def test_without_record_stream_it_would_not_wait(busy: Busy) -> None:
    other = torch.Stream("xpu")
    first = _C.testing.raw_allocate(1000)
    busy(other, first)
    _C.testing.raw_free(first)
    second = _C.testing.raw_allocate(1000)
    other.synchronize()
    _C.testing.raw_free(second)
    assert second == first


def test_recording_its_own_stream_changes_nothing(busy: Busy) -> None:
    own = torch.Stream("xpu")
    with own:
        first = _C.testing.raw_allocate(1000)
        busy(own, first)
        _C.testing.raw_record_stream(first, own.stream_id, 0)
        _C.testing.raw_free(first)
        second = _C.testing.raw_allocate(1000)
    own.synchronize()
    _C.testing.raw_free(second)
    assert second == first


def test_work_submitted_after_the_free_is_not_waited_for(busy: Busy) -> None:
    other = torch.Stream("xpu")
    first, elsewhere = _C.testing.raw_allocate(1000), _C.testing.raw_allocate(1000)
    _C.testing.raw_record_stream(first, other.stream_id, 0)
    _C.testing.raw_free(first)
    work = busy(other, elsewhere)
    second = _C.testing.raw_allocate(1000)
    assert not is_complete(work), "the work ended too soon for the test"
    other.synchronize()
    _C.testing.raw_free(second)
    _C.testing.raw_free(elsewhere)
    assert second == first


@pytest.mark.parametrize("recorded", [False, True])
def test_emptying_the_cache_waits_for_the_work(busy: Busy, recorded: bool) -> None:
    own, other = torch.Stream("xpu"), torch.Stream("xpu")
    with own:
        address = _C.testing.raw_allocate(1000)
    work = busy(other if recorded else own, address)
    if recorded:
        _C.testing.raw_record_stream(address, other.stream_id, 0)
    _C.testing.raw_free(address)
    assert not is_complete(work), "the work ended too soon for the test"
    torch._C._accelerator_emptyCache()
    assert is_complete(work)
    assert _C.memory_snapshot() == []


@pytest.mark.usefixtures("memory")
def test_emptying_the_cache_keeps_segments_in_use() -> None:
    kept, freed = _C.testing.raw_allocate(30 * MIB), _C.testing.raw_allocate(40 * MIB)
    _C.testing.raw_free(freed)
    torch._C._accelerator_emptyCache()
    assert [segment["address"] for segment in _C.memory_snapshot()] == [kept]
    _C.testing.raw_free(kept)


@pytest.mark.usefixtures("memory")
def test_whose_a_pointer_is() -> None:
    address = _C.testing.raw_allocate(1000)
    assert _C.testing.device_of_pointer(address) == 0
    assert _C.testing.device_of_pointer(address + 1023) == 0
    assert _C.testing.device_of_pointer(id(address)) == -1
    assert _C.testing.block_of_pointer(address + 1023) == (address, 1024)
    assert _C.testing.block_of_pointer(address + 1024) == (0, 0)
    _C.testing.raw_free(address)
    assert _C.testing.block_of_pointer(address) == (0, 0)


@pytest.mark.usefixtures("memory")
def test_frees_are_told_to_callbacks() -> None:
    before = _C.testing.count_frees()
    address = _C.testing.raw_allocate(1000)
    assert _C.testing.count_frees() == before
    _C.testing.raw_free(address)
    assert _C.testing.count_frees() == before + 1


@pytest.mark.usefixtures("memory")
def test_nothing_is_a_valid_size() -> None:
    assert _C.testing.raw_allocate(0) == 0
    _C.testing.raw_free(0)
    assert _C.memory_snapshot() == []
