"""Pinned memory: host memory of SYCL's, cached, and kept while copies use it."""

from collections.abc import Iterator

import pytest
import torch

import xpurt
from xpurt import _C


@pytest.fixture(autouse=True)
def mapping(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with xpurt.xpu_mapping("CPU"):
        torch.accelerator.synchronize()  # PyTorch empties no cache before its first use
        torch._C._accelerator_emptyHostCache()
        yield
        torch._C._accelerator_emptyHostCache()


def test_pin_memory() -> None:
    plain = torch.arange(10.0)
    assert not plain.is_pinned()
    pinned = plain.pin_memory()
    assert pinned.is_pinned()
    assert pinned.device.type == "cpu"
    assert torch.equal(plain, pinned)
    assert _C.testing.is_pinned_pointer(pinned.data_ptr())
    assert not _C.testing.is_pinned_pointer(plain.data_ptr())


def test_a_part_of_it_is_pinned() -> None:
    assert torch.empty(100, pin_memory=True)[50:].is_pinned()


def test_a_freed_block_is_used_again() -> None:
    first = torch.empty(1000, pin_memory=True)
    address = first.data_ptr()
    del first
    assert torch.empty(900, pin_memory=True).data_ptr() == address


def test_emptying_the_host_cache_gives_it_back() -> None:
    pinned = torch.empty(1000, pin_memory=True)
    address = pinned.data_ptr()
    del pinned
    assert _C.testing.is_pinned_pointer(address)
    torch._C._accelerator_emptyHostCache()
    assert not _C.testing.is_pinned_pointer(address)


def test_a_data_loader_pins() -> None:
    if not torch.accelerator.is_available():
        pytest.skip("the module torch.xpu does not say that xpu is available")
    rows = torch.arange(40.0).reshape(20, 2)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(rows), batch_size=5, pin_memory=True
    )
    batches = [batch for (batch,) in loader]
    assert all(batch.is_pinned() for batch in batches)
    assert torch.equal(torch.cat(batches), rows)


def test_it_outlives_its_mapping() -> None:
    pinned = torch.ones(1000).pin_memory()
    with xpurt.xpu_mapping("explicit"):
        assert pinned.sum() == 1000
        del pinned
