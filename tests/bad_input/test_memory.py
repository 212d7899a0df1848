"""Requests that no device can grant. The allocator's own tests: tests/allocator."""

import gc
from collections.abc import Callable

import pytest
import torch
from own_process import output

import xpurt
from xpurt import _C

HUGE = 1 << 44

ASKING: dict[str, Callable[[torch.Tensor], object]] = {
    "empty": lambda x: torch.empty(HUGE, device=x.device),
    "zeros": lambda x: torch.zeros(HUGE, device=x.device),
    "to": lambda x: torch.ones(1).expand(HUGE).to(x.device),
    "clone": lambda x: x[:1].expand(HUGE).clone(),
    "broadcast": lambda x: x.repeat(1 << 10)[:, None] + x[:1].expand(HUGE >> 8),
    "storage": lambda x: x.untyped_storage().resize_(HUGE),
}


@pytest.mark.parametrize("ask", ASKING.values(), ids=list(ASKING))
def test_more_than_the_device_has(
    ask: Callable[[torch.Tensor], object], xpu: torch.device
) -> None:
    tensor = torch.arange(4.0, device=xpu)
    gc.collect()
    before = _C.live_memory()
    (place,) = xpurt.where(tensor)  # under AUTO, one of several devices
    (home,) = [d for d in xpurt.physical_devices() if d.filter_string == place]
    with pytest.raises(torch.OutOfMemoryError) as caught:
        ask(tensor)
    text = str(caught.value)
    assert "Tried to allocate" in text
    assert "bytes) on xpu:0" in text
    assert f"{home.memory_bytes / 2**30:.2f} GiB" in text
    assert "more than the device has in all" in text
    del caught
    gc.collect()
    assert _C.live_memory() == before
    assert (tensor + 1).tolist() == [1, 2, 3, 4]


def test_a_small_gpu_gives_back_what_it_kept() -> None:
    code = """
    import torch, xpurt
    MIB = 1 << 20
    def bytes_on_xpu(mib): return torch.empty(mib * MIB, dtype=torch.uint8, device="xpu")
    print(torch.xpu.get_device_properties(0).total_memory // MIB)
    a = bytes_on_xpu(100)
    del a
    print(torch.xpu.memory_reserved() // MIB)
    b = bytes_on_xpu(180)                     # not beside the 100 that are kept
    print(torch.xpu.memory_reserved() // MIB)
    try:
        bytes_on_xpu(100)
    except torch.OutOfMemoryError as error:
        text = str(error)
        print("Tried to allocate 100.00 MiB" in text, "holds 180.00 MiB" in text)
    print(bytes_on_xpu(20).fill_(7)[-1].item(), b.numel() // MIB)
    """
    assert output(
        code,
        XPURT_MAPPING="GPU",
        XPURT_VIRTUAL_GPU="strict",
        XPURT_VIRTUAL_GPU_MEMORY=str(256 << 20),
        XPURT_FALLBACK="silent",
    ).splitlines() == ["256", "100", "180", "True True", "7 180"]
