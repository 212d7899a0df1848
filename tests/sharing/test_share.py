"""`share()`: the same bytes from both sides."""

import gc
import threading
from collections.abc import Iterator

import pytest
import torch

import xpurt
from xpurt import _C


@pytest.fixture(autouse=True)
def cpu_mapping() -> Iterator[None]:
    with xpurt.xpu_mapping("CPU"):
        yield
        gc.collect()


def live() -> tuple[int, int]:
    gc.collect()
    return _C.live_memory()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.bfloat16])
@pytest.mark.parametrize("side", ["cpu", "xpu"])
def test_writes_are_seen_on_both_sides(side: str, dtype: torch.dtype) -> None:
    x = torch.zeros(4, dtype=dtype, device=side)
    y = xpurt.share(x)
    assert y.device.type == {"cpu": "xpu", "xpu": "cpu"}[side]
    assert y.data_ptr() == x.data_ptr()
    assert y.dtype == dtype
    y[1:3] = 1
    torch.xpu.synchronize()
    assert x.tolist() == [0, 1, 1, 0]
    x[0] = 1
    torch.xpu.synchronize()
    assert y.tolist() == [1, 1, 1, 0]


def test_queued_kernels_are_seen_after_synchronize() -> None:
    x = torch.zeros(1 << 20)
    y = xpurt.share(x)
    with xpurt.kernel_policy("sycl"):
        y.add_(1).mul_(3)
    torch.xpu.synchronize()
    assert x.unique().tolist() == [3.0]


@pytest.mark.parametrize("side", ["cpu", "xpu"])
def test_layout_is_kept(side: str) -> None:
    x = torch.arange(24.0).reshape(4, 6).to(side)
    part = x[1:, ::2].t()
    shared = xpurt.share(part)
    assert (shared.shape, shared.stride()) == (part.shape, part.stride())
    assert shared.storage_offset() == part.storage_offset()
    assert shared.tolist() == part.tolist()


@pytest.mark.parametrize("side", ["cpu", "xpu"])
def test_nothing_to_share(side: str) -> None:
    shared = xpurt.share(torch.empty(0, 3, device=side))
    assert shared.shape == (0, 3)
    assert shared.cpu().tolist() == []


@pytest.mark.parametrize("side", ["cpu", "xpu"])
def test_the_result_has_no_gradient(side: str) -> None:
    leaf = torch.ones(3, device=side, requires_grad=True)
    shared = xpurt.share(leaf * 2)
    assert not shared.requires_grad
    assert xpurt.share(leaf).tolist() == [1.0] * 3


def test_xpu_bytes_live_as_long_as_either_side() -> None:
    before = live()
    x = torch.full((1000,), 3.0, device="xpu")
    y = xpurt.share(x)
    assert live()[0] == before[0] + 1
    del x
    assert live()[0] == before[0] + 1
    assert y.unique().tolist() == [3.0]
    del y
    assert live() == before
    x = torch.full((1000,), 3.0, device="xpu")
    y = xpurt.share(x)
    del y
    assert x.unique().tolist() == [3.0]
    del x
    assert live() == before


def test_cpu_bytes_live_as_long_as_either_side() -> None:
    before = live()
    x = torch.full((1000,), 3.0)
    storage = x.untyped_storage()
    y = xpurt.share(x)
    assert live() == (before[0] + 1, before[1] + 4000)
    del x, storage
    assert y.cpu().unique().tolist() == [3.0]
    del y
    assert live() == before


def test_a_kernel_still_reads_when_the_owner_goes() -> None:
    before = live()
    stream = torch.xpu.current_stream()
    y = xpurt.share(torch.full((1 << 18,), 2.0))
    with xpurt.kernel_policy("sycl"):
        _C._submit_sleep(stream.stream_id, stream.device_index, 0.1)
        z = y * 2
    del y
    rubbish = [torch.full((1 << 18,), -1.0) for _ in range(4)]
    assert z.cpu().unique().tolist() == [4.0]
    del z, rubbish
    assert live() == before


def test_the_mapping_stays_while_something_is_shared() -> None:
    x = torch.zeros(10)
    y = xpurt.share(x)
    with pytest.raises(xpurt.MappingError, match="1 storage holds 40 bytes"):
        xpurt.set_xpu_mapping("explicit")
    assert xpurt.get_xpu_mapping() == "CPU"
    del y
    of_xpu = xpurt.share(torch.zeros(10, device="xpu"))
    with pytest.raises(xpurt.MappingError, match="alive"):
        xpurt.set_xpu_mapping("explicit")
    del of_xpu


@pytest.mark.parametrize("side", ["cpu", "xpu"])
def test_neither_side_can_grow(side: str) -> None:
    x = torch.arange(4.0).to(side)
    y = xpurt.share(x)
    on_cpu, on_xpu = (x, y) if side == "cpu" else (y, x)
    for tensor in (on_cpu.view(4), on_xpu):
        with pytest.raises(RuntimeError, match="not resizable"):
            tensor.resize_(1 << 16)
    assert on_xpu.shape == (4,)
    assert on_xpu.tolist() == on_cpu.tolist() == [0, 1, 2, 3]
    on_xpu.resize_(2)
    assert on_xpu.tolist() == [0, 1]


def test_what_cannot_be_shared() -> None:
    with pytest.raises(TypeError, match="dense"):
        xpurt.share(torch.eye(3).to_sparse())
    with pytest.raises(TypeError, match="meta"):
        xpurt.share(torch.empty(1, device="meta"))
    with pytest.raises(ValueError, match="xpu device"):
        xpurt.share(torch.zeros(1), device="cpu")
    with pytest.raises(RuntimeError, match="xpu:7"):
        xpurt.share(torch.zeros(1), device="xpu:7")


def test_a_gpu_and_the_host_share_nothing() -> None:
    if not any(d.kind == "gpu" for d in xpurt.physical_devices()):
        pytest.skip("needs the virtual GPU")
    with xpurt.xpu_mapping("GPU"):
        x = torch.ones(3, device="xpu")
        with pytest.raises(RuntimeError, match=r"tensor\.cpu\(\)"):
            xpurt.share(x)
        with pytest.raises(RuntimeError, match=r"tensor\.to\("):
            xpurt.share(torch.ones(3))
        assert x.tolist() == [1.0] * 3
        del x


def test_threads_that_share_and_drop() -> None:
    before = live()
    wrong: list[object] = []

    def work() -> None:
        for i in range(100):
            x = torch.full((50,), float(i), device="xpu")
            y = xpurt.share(xpurt.share(x))
            del x
            if y.cpu().unique().tolist() != [float(i)]:
                wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert live() == before
