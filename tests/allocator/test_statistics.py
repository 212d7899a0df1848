"""The counts of the allocator, which agree with its snapshot."""

import pytest
import torch

from allocator.conftest import stats
from xpurt import _C

MIB = 1 << 20
pytestmark = pytest.mark.usefixtures("memory")


def change(before: dict[str, int]) -> dict[str, int]:
    return {k: v - before[k] for k, v in stats().items() if v != before[k]}


def test_one_small_allocation() -> None:
    before = stats()
    address = _C.testing.raw_allocate(1000)
    now = change(before)
    for pool in ("all", "small_pool"):
        assert now[f"allocation.{pool}.current"] == 1
        assert now[f"active.{pool}.current"] == 1
        assert now[f"segment.{pool}.current"] == 1
        assert now[f"requested_bytes.{pool}.current"] == 1000
        assert now[f"allocated_bytes.{pool}.current"] == 1024
        assert now[f"active_bytes.{pool}.current"] == 1024
        assert now[f"reserved_bytes.{pool}.current"] == 2 * MIB
        assert now[f"inactive_split.{pool}.current"] == 1
        assert now[f"inactive_split_bytes.{pool}.current"] == 2 * MIB - 1024
    assert not any("large_pool" in key for key in now)
    assert _C.live_memory() == (1, 1000)
    _C.testing.raw_free(address)
    now = change(before)
    assert now["allocated_bytes.all.freed"] == 1024
    assert now["reserved_bytes.all.current"] == 2 * MIB
    assert "allocated_bytes.all.current" not in now
    assert "inactive_split.all.current" not in now


def test_a_large_one() -> None:
    before = stats()
    address = _C.testing.raw_allocate(11 * MIB)
    now = change(before)
    assert now["allocated_bytes.large_pool.current"] == 12 * MIB
    assert now["requested_bytes.large_pool.current"] == 11 * MIB
    assert now["num_device_alloc"] == 1
    assert not any("small_pool" in key for key in now)
    _C.testing.raw_free(address)
    torch._C._accelerator_emptyCache()
    assert change(before)["num_device_free"] == 1


def test_peaks_and_resets() -> None:
    torch._C._accelerator_resetPeakStats(0)
    torch._C._accelerator_resetAccumulatedStats(0)
    addresses = [_C.testing.raw_allocate(1024) for _ in range(3)]
    for address in addresses:
        _C.testing.raw_free(address)
    assert stats()["allocated_bytes.all.peak"] == 3 * 1024
    assert stats()["allocated_bytes.all.allocated"] == 3 * 1024
    torch._C._accelerator_resetPeakStats(0)
    assert stats()["allocated_bytes.all.peak"] == 0
    assert stats()["reserved_bytes.all.peak"] == 2 * MIB
    torch._C._accelerator_resetAccumulatedStats(0)
    assert stats()["allocated_bytes.all.allocated"] == 0


def test_the_snapshot_adds_up() -> None:
    addresses = [
        _C.testing.raw_allocate(n) for n in (10, 1000, 100_000, 3 * MIB, 12 * MIB)
    ]
    _C.testing.raw_free(addresses.pop(1))
    segments = _C.memory_snapshot()
    now = stats()
    blocks = [block for segment in segments for block in segment["blocks"]]
    used = [block for block in blocks if block["state"] == "active_allocated"]
    assert sorted(b["address"] for b in used) == sorted(addresses)
    assert sum(s["total_size"] for s in segments) == now["reserved_bytes.all.current"]
    assert sum(b["size"] for b in used) == now["allocated_bytes.all.current"]
    assert (
        sum(s["allocated_size"] for s in segments)
        == (now["allocated_bytes.all.current"])
    )
    assert sum(b["requested_size"] for b in used) == 10 + 100_000 + 15 * MIB
    assert {s["segment_type"] for s in segments} == {"small", "large"}
    for address in addresses:
        _C.testing.raw_free(address)


def test_the_profiler_sees_memory() -> None:
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        address = _C.testing.raw_allocate(5000)
        _C.testing.raw_free(address)
    seen = [
        e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"
    ]
    ours = [
        e.nbytes() for e in seen if e.device_type() == torch.autograd.DeviceType.XPU
    ]
    assert ours == [5120, -5120]
