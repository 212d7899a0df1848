"""Limits, and the messages when they are reached."""

from collections.abc import Callable, Iterator

import pytest
import torch

from allocator.conftest import stats
from xpurt import _C

MIB = 1 << 20
pytestmark = pytest.mark.usefixtures("memory")


@pytest.fixture
def limit() -> Iterator[Callable[[int], None]]:
    """limit(size_bytes): what may be reserved; lifted at the end."""
    total = torch._C._accelerator_getMemoryInfo(0)[1]

    def set_limit(size_bytes: int) -> None:
        _C.set_memory_fraction(0, size_bytes / total + 1e-12)

    yield set_limit
    _C.set_memory_fraction(0, 1.0)


def test_the_error_counts(limit: Callable[[int], None]) -> None:
    limit(64 * MIB)
    held = _C.testing.raw_allocate(40 * MIB)
    before = stats()
    with pytest.raises(torch.OutOfMemoryError) as caught:
        _C.testing.raw_allocate(30 * MIB)
    _C.testing.raw_free(held)
    text = str(caught.value)
    assert text.startswith("XPU out of memory. Tried to allocate 30.00 MiB")
    assert f"({30 * MIB} bytes) on xpu:0" in text
    assert f"holds 40.00 MiB ({40 * MIB} bytes)" in text
    assert "in 1 live storage" in text
    assert "are free" in text
    assert "set_per_process_memory_fraction" in text
    assert stats()["num_ooms"] == before["num_ooms"] + 1
    assert stats()["num_alloc_retries"] == before["num_alloc_retries"] + 1


def test_the_cache_is_emptied_first(limit: Callable[[int], None]) -> None:
    limit(64 * MIB)
    _C.testing.raw_free(_C.testing.raw_allocate(40 * MIB))
    before = stats()
    address = _C.testing.raw_allocate(60 * MIB)  # fits only without the 40
    assert stats()["num_alloc_retries"] == before["num_alloc_retries"] + 1
    assert stats()["num_ooms"] == before["num_ooms"]
    assert stats()["reserved_bytes.all.current"] == 60 * MIB
    _C.testing.raw_free(address)


def test_work_goes_on_after_the_error(limit: Callable[[int], None]) -> None:
    limit(32 * MIB)
    for _ in range(3):
        with pytest.raises(torch.OutOfMemoryError):
            _C.testing.raw_allocate(40 * MIB)
    _C.testing.raw_free(_C.testing.raw_allocate(30 * MIB))


def test_more_than_the_device_has_fails_at_once() -> None:
    total = torch._C._accelerator_getMemoryInfo(0)[1]
    before = stats()
    for size in (total + 1, (1 << 63) - 1):
        with pytest.raises(torch.OutOfMemoryError, match="more than the device has"):
            _C.testing.raw_allocate(size)
    now = stats()
    assert now["num_alloc_retries"] == before["num_alloc_retries"]
    assert now["num_device_alloc"] == before["num_device_alloc"]


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_fractions_out_of_range(fraction: float) -> None:
    with pytest.raises(ValueError, match="invalid fraction"):
        _C.set_memory_fraction(0, fraction)
    assert _C.memory_fraction(0) == 1.0


def test_memory_info_is_that_of_the_machine() -> None:
    free, total = torch._C._accelerator_getMemoryInfo(0)
    expected_total, expected_free, _ = _C.host_memory()
    assert 0 < total <= expected_total
    assert abs(free - expected_free) < 1 << 30


def test_a_limit_holds_for_what_is_cached_already() -> None:
    held = [torch.empty(40 * MIB, dtype=torch.uint8, device="xpu") for _ in range(2)]
    held.clear()
    total = torch.xpu.mem_get_info()[1]
    torch.xpu.set_per_process_memory_fraction(50 * MIB / total)
    try:
        held.append(torch.empty(40 * MIB, dtype=torch.uint8, device="xpu"))
        with pytest.raises(torch.OutOfMemoryError, match="memory fraction"):
            torch.empty(40 * MIB, dtype=torch.uint8, device="xpu")
    finally:
        held.clear()
        torch.xpu.set_per_process_memory_fraction(1.0)
