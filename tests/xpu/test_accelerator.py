"""xpu as PyTorch's accelerator, and what makes it so."""

import copy

import pytest
import torch

import xpurt


def test_it_is_the_accelerator(xpu: torch.device) -> None:
    accelerator = torch.accelerator
    assert accelerator.is_available()
    assert accelerator.current_accelerator() == torch.device("xpu")
    assert accelerator.device_count() == torch.xpu.device_count()
    assert accelerator.current_device_index() == torch.xpu.current_device() == 0
    accelerator.synchronize()
    accelerator.synchronize(0)
    assert torch.device(0) == xpu


def test_its_streams() -> None:
    stream = torch.Stream()
    assert stream.device.type == "xpu"
    before = torch.accelerator.current_stream()
    torch.accelerator.set_stream(stream)
    assert torch.xpu.current_stream().stream_id == stream.stream_id
    torch.accelerator.set_stream(before)
    with stream:
        assert torch.accelerator.current_stream() == stream
    assert torch.accelerator.current_stream() == before


def test_its_memory(xpu: torch.device) -> None:
    torch.accelerator.empty_cache()
    before = torch.accelerator.memory_allocated()
    tensor = torch.empty(1 << 20, dtype=torch.uint8, device=xpu)
    for count in (torch.accelerator.memory_allocated, torch.xpu.memory_allocated):
        assert count() == before + (1 << 20)
    assert torch.xpu.max_memory_allocated() >= before + (1 << 20)
    assert torch.xpu.memory_reserved() >= torch.xpu.memory_allocated()
    del tensor
    assert torch.xpu.memory_allocated() == before
    torch.xpu.reset_peak_memory_stats()
    assert torch.xpu.max_memory_allocated() == before
    torch.xpu.reset_accumulated_memory_stats()
    assert torch.xpu.memory_stats()["allocated_bytes.all.freed"] == 0


def test_what_the_statistics_are_called(xpu: torch.device) -> None:
    counts = ("allocation", "segment", "active", "inactive_split")
    sums = ("allocated", "reserved", "active", "requested", "inactive_split")
    names = {
        f"{what}.{pool}.{kind}"
        for what in (*counts, *(f"{each}_bytes" for each in sums))
        for pool in ("all", "large_pool", "small_pool")
        for kind in ("current", "peak", "allocated", "freed")
    }
    tensor = torch.empty(100, device=xpu)
    stats = torch.xpu.memory_stats(xpu)
    assert set(stats) == names
    assert stats["requested_bytes.all.current"] % 512 == 400
    assert stats["allocated_bytes.all.current"] % 512 == 0
    del tensor


def test_free_and_total_memory(xpu: torch.device) -> None:
    free, total = torch.xpu.mem_get_info(xpu)
    assert 0 < free <= total
    assert torch.accelerator.get_memory_info() == pytest.approx((free, total), rel=0.1)
    assert torch.xpu.device_memory_used() == pytest.approx(total - free, rel=0.5)


def test_the_share_of_the_memory(xpu: torch.device) -> None:
    assert torch.xpu.get_per_process_memory_fraction() == 1.0
    torch.xpu.set_per_process_memory_fraction(0.5)
    assert torch.xpu.get_per_process_memory_fraction(xpu) == 0.5
    torch.xpu.set_per_process_memory_fraction(1.0)
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="invalid fraction:"):
            torch.xpu.set_per_process_memory_fraction(wrong)
    with pytest.raises(TypeError):
        torch.xpu.set_per_process_memory_fraction(1)


def test_a_snapshot_of_the_memory(xpu: torch.device) -> None:
    tensor = torch.empty(1000, device=xpu)
    segments = [s for s in torch.xpu.memory_snapshot() if s["device"] == 0]
    active = sum(
        block["requested_size"]
        for segment in segments
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    )
    assert active == torch.xpu.memory_stats()["requested_bytes.all.current"]
    assert active >= 4000
    del tensor


def test_devices_as_contexts(xpu: torch.device) -> None:
    with torch.device("xpu"):
        assert torch.empty(1).device == xpu
        assert torch.nn.Linear(2, 2).weight.device == xpu
    assert torch.empty(1).device.type == "cpu"
    torch.set_default_device("xpu")
    try:
        assert torch.ones(2).device == xpu
    finally:
        torch.set_default_device(None)
    with torch.xpu.device(0):
        assert torch.xpu.current_device() == 0
    with torch.xpu.device(-1), torch.xpu.device(None):
        assert torch.xpu.current_device() == 0
    tensor = torch.empty(1, device=xpu)
    with torch.xpu.device_of(tensor):
        assert torch.xpu.current_device() == 0
    torch.xpu.set_device(-1)
    del tensor


def test_methods_that_lead_to_xpu(xpu: torch.device) -> None:
    tensor = torch.arange(4.0)
    there = tensor.xpu()
    assert there.device == xpu
    assert there.is_xpu
    assert there.tolist() == tensor.tolist()
    assert there.get_device() == 0
    module = torch.nn.Linear(4, 2)
    expected = module(tensor)
    module = copy.deepcopy(module).xpu()
    assert module.weight.device == xpu
    torch.testing.assert_close(module(there).cpu(), expected)
    assert torch.get_device_module("xpu") is torch.xpu
    assert torch.get_device_module() is torch.xpu
    assert repr(there) == "tensor([0., 1., 2., 3.], device='xpu:0')"


def test_an_ordinal_that_is_not_there(xpu: torch.device) -> None:
    count = torch.xpu.device_count()
    for use in (
        lambda: torch.xpu.set_device(count),
        lambda: torch.xpu.get_device_properties(count),
        lambda: torch.xpu.mem_get_info(count),
        lambda: torch.xpu.device(count).__enter__(),
        lambda: torch.accelerator.set_device_index(count),
    ):
        with pytest.raises(RuntimeError, match="out of range"):
            use()
    assert torch.xpu.current_device() == 0


def test_two_ordinals() -> None:
    cpu = next(d for d in xpurt.physical_devices() if d.kind == "cpu")
    if cpu.compute_units % 2:
        pytest.skip(f"{cpu.compute_units} compute units have no two equal parts")
    with xpurt.xpu_mapping("explicit", devices="cpu", partition=2):
        torch.xpu.set_device(1)
        try:
            assert torch.xpu.current_device() == 1
            assert torch.accelerator.current_device_index() == 1
            assert torch.empty(1, device="xpu").get_device() == 1
            assert torch.xpu.Stream().device_index == 1
            with torch.xpu.device(0):
                assert torch.xpu.current_device() == 0
            assert torch.xpu.current_device() == 1
            stream = torch.xpu.Stream("xpu:0")
            assert stream.device_index == 0
            with torch.xpu.stream(stream):
                assert torch.xpu.current_device() == 0
                assert torch.xpu.current_stream() == stream
            assert torch.xpu.current_device() == 1
            peer = torch.xpu.can_device_access_peer(0, 1)
            assert peer == torch.xpu.can_device_access_peer(1, 0)
        finally:
            torch.xpu.set_device(0)
