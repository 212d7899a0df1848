"""Free segments go back to the driver before more is reserved than is needed."""

import threading
from collections.abc import Callable

import dpctl
import pytest
import torch

from allocator.conftest import is_complete, stats
from xpurt import _C

MIB = 1 << 20

Busy = Callable[[torch.Stream, int], dpctl.SyclEvent]


def reserved() -> int:
    return stats()["reserved_bytes.all.current"]


@pytest.mark.usefixtures("memory")
def test_what_is_free_goes_before_more_is_reserved() -> None:
    freed, kept = _C.testing.raw_allocate(64 * MIB), _C.testing.raw_allocate(16 * MIB)
    _C.testing.raw_free(freed)
    assert reserved() == 80 * MIB
    retries = stats()["num_alloc_retries"]
    larger = _C.testing.raw_allocate(70 * MIB)
    assert reserved() == 86 * MIB
    assert stats()["num_alloc_retries"] == retries
    _C.testing.raw_free(kept)
    _C.testing.raw_free(larger)


@pytest.mark.usefixtures("memory")
def test_what_fits_is_kept() -> None:
    first = _C.testing.raw_allocate(64 * MIB)
    _C.testing.raw_free(first)
    again = _C.testing.raw_allocate(63 * MIB)
    assert again == first
    _C.testing.raw_free(again)


@pytest.mark.usefixtures("memory")
def test_a_segment_is_as_large_as_its_request() -> None:
    addresses = [_C.testing.raw_allocate(64 * MIB)]  # the first one has the usual size
    before = reserved()
    addresses.append(_C.testing.raw_allocate(3 * MIB + 1))
    assert reserved() == before + 3 * MIB + 4096
    for address in addresses:
        _C.testing.raw_free(address)


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("size", [MIB, 8 * MIB])
def test_the_only_segment_stays_however_much_of_it_is_free(size: int) -> None:
    """If it were released, a new one of the same size would have to map its pages."""
    _C.testing.raw_free(_C.testing.raw_allocate(size))
    made = stats()["segment.all.allocated"]
    for _ in range(10):
        _C.testing.raw_free(_C.testing.raw_allocate(size))
    assert stats()["segment.all.allocated"] == made


@pytest.mark.usefixtures("memory")
def test_a_program_that_repeats_its_rounds_maps_nothing_again() -> None:
    """Its stages use segments of two pools, which together exceed the peak."""

    def run(rounds: int) -> None:
        for _ in range(rounds):
            for stage in ([8 * MIB] * 8, [MIB] * 6):
                addresses = [_C.testing.raw_allocate(size) for size in stage]
                for address in addresses:
                    _C.testing.raw_free(address)

    run(200)
    made = stats()["segment.all.allocated"]
    run(10)
    assert stats()["segment.all.allocated"] == made
    assert reserved() <= 64 * MIB * 9 // 8 + 3 * MIB


def test_nobody_waits_for_queued_work(
    busy: Busy,
) -> None:
    own = torch.Stream("xpu")
    with own:
        freed, kept = (
            _C.testing.raw_allocate(64 * MIB),
            _C.testing.raw_allocate(16 * MIB),
        )
        work = busy(own, freed)
        _C.testing.raw_free(freed)
        larger = _C.testing.raw_allocate(70 * MIB)
        assert not is_complete(work), "somebody has waited for the work"
        assert larger != freed
        # It is counted, and shown, until it has gone.
        assert reserved() == 150 * MIB
        sizes = [s["total_size"] for s in _C.memory_snapshot()]
        assert sorted(sizes) == [16 * MIB, 64 * MIB, 70 * MIB]
        assert _C.testing.device_of_pointer(freed) == -1
        own.synchronize()
        _C.testing.raw_free(_C.testing.raw_allocate(16 * MIB))
        assert reserved() <= 102 * MIB
        _C.testing.raw_free(kept)
        _C.testing.raw_free(larger)


def test_emptying_the_cache_waits_for_what_is_leaving(
    busy: Busy,
) -> None:
    own = torch.Stream("xpu")
    with own:
        freed, kept = (
            _C.testing.raw_allocate(64 * MIB),
            _C.testing.raw_allocate(16 * MIB),
        )
        work = busy(own, freed)
        _C.testing.raw_free(freed)
        _C.testing.raw_free(_C.testing.raw_allocate(70 * MIB))
        _C.testing.raw_free(kept)
        assert not is_complete(work), "somebody has waited for the work"
    torch._C._accelerator_emptyCache()
    assert is_complete(work)
    assert _C.memory_snapshot() == []


@pytest.mark.usefixtures("memory")
def test_leaving_bytes_are_those_that_leave() -> None:
    """Another thread may empty the cache while segments are being released. The count
    then wrapped around, and the allocator reported that it held nothing."""
    device = torch.xpu.current_device()
    stop = threading.Event()

    def empty() -> None:
        while not stop.is_set():
            torch.xpu.empty_cache()

    others = [threading.Thread(target=empty) for _ in range(2)]
    for thread in others:
        thread.start()
    try:
        for round in range(200):
            held = _C.testing.raw_allocate((20 + round % 7) * MIB)
            _C.testing.raw_free(held)
            assert _C.testing.releasing_bytes(device) < 1 << 40
    finally:
        stop.set()
        for thread in others:
            thread.join()
    torch.xpu.empty_cache()
    assert _C.testing.releasing_bytes(device) == 0
