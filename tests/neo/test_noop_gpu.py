"""xpurt on Intel's GPU driver, beneath which no kernel runs: `make test-neo`.

No test looks at what a kernel computes. Copies are right, and so is what the host computes.
"""

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch.nn import functional

import xpurt
from xpurt.mapping.auto import device_cost

GIB = 1 << 30
GPU, CPU = "opencl:gpu:0", "opencl:cpu:0"
ARC = "Intel(R) Arc(TM) A770 Graphics"
_launches = ctypes.CDLL(None).noop_gpu_launches
_launches.restype = ctypes.c_uint64


@contextmanager
def counted_launches() -> Iterator[list[int]]:
    """The kernels launched within go into the list."""
    torch.xpu.synchronize()
    before, counts = _launches(), []
    yield counts
    torch.xpu.synchronize()
    counts.append(_launches() - before)


@contextmanager
def mapped(mapping: str) -> Iterator[None]:
    before = xpurt.get_xpu_mapping()
    xpurt.set_xpu_mapping(mapping)
    try:
        yield
    finally:
        xpurt.set_xpu_mapping(before)


def test_lists_the_gpu() -> None:
    gpu, cpu = xpurt.physical_devices()
    assert (gpu.filter_string, cpu.filter_string) == (GPU, CPU)
    assert (gpu.kind, gpu.name) == ("gpu", ARC)
    assert (gpu.has_fp16, gpu.has_fp64, gpu.host_accessible) == (True, False, False)


def test_its_rates_follow_from_what_the_driver_says() -> None:
    """512 vector engines of 8 lanes at 2.4 GHz."""
    gpu, _ = xpurt.physical_devices()
    assert (gpu.compute_units, gpu.clock_mhz) == (512, 2400)
    assert device_cost(gpu).flops_per_us == 512 * 8 * 2400


def test_lists_no_gpu_without_the_library() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    program = (
        "import xpurt; print(*[d.filter_string for d in xpurt.physical_devices()])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "XPURT_MAPPING": "CPU"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert ended.stdout.split() == [CPU]


@pytest.mark.parametrize(
    ("mapping", "ordinals"),
    [("GPU", 1), ("AUTO", 1), ("AUTO:GPU,CPU", 1), ("explicit", 2)],
)
def test_maps_the_gpu(mapping: str, ordinals: int) -> None:
    with mapped(mapping):
        assert torch.xpu.device_count() == ordinals
        assert torch.xpu.get_device_name(0) == ARC


def test_the_cpu_computes_what_the_gpu_has_no_type_for() -> None:
    with mapped("AUTO"):
        twice = torch.arange(4, dtype=torch.float64).to("xpu") * 2
        where, values = xpurt.where(twice), twice.tolist()
        del twice
    assert where == (CPU,)
    assert values == [0, 2, 4, 6]


def test_properties(xpu: torch.device) -> None:
    properties = torch.xpu.get_device_properties(xpu)
    assert properties.type == "gpu"
    assert properties.device_id == 0x56A0
    assert properties.gpu_eu_count == 32 * 16
    assert properties.gpu_subslice_count == 32
    assert properties.max_work_group_size == 1024
    assert properties.sub_group_sizes == [8, 16, 32]
    assert properties.local_mem_size == 64 << 10
    assert properties.last_level_cache_size == 16 << 20
    assert 15 * GIB < properties.total_memory <= 16 * GIB


def test_counts_memory(xpu: torch.device) -> None:
    torch.xpu.empty_cache()
    free = torch.xpu.mem_get_info(xpu)[0]
    held = torch.empty(GIB, dtype=torch.uint8, device=xpu)
    assert free - torch.xpu.mem_get_info(xpu)[0] >= GIB
    del held
    torch.xpu.empty_cache()
    assert torch.xpu.mem_get_info(xpu)[0] == free


@pytest.mark.parametrize(
    ("size_bytes", "reason"),
    [
        (20 * GIB, "more than the device has in all"),
        (5 * GIB, "The driver gives at most 4.00 GiB in one piece"),
    ],
)
def test_says_why_memory_is_refused(
    xpu: torch.device, size_bytes: int, reason: str
) -> None:
    with pytest.raises(torch.OutOfMemoryError, match=reason):
        torch.empty(size_bytes, dtype=torch.uint8, device=xpu)


@pytest.mark.parametrize("pinned", [False, True], ids=["pageable", "pinned"])
@pytest.mark.parametrize("length", [1, 1000, 3 << 20, 10_000_019])
def test_copies_to_the_device_and_back(
    xpu: torch.device, length: int, pinned: bool
) -> None:
    sent = torch.arange(length, dtype=torch.int32)
    if pinned:
        sent = sent.pin_memory()
    with counted_launches() as launches:
        received = sent.to(xpu, non_blocking=pinned).cpu()
    assert torch.equal(received, sent)
    assert launches == [0]  # the copy engine's work


def test_no_kernel_runs(xpu: torch.device) -> None:
    sent = torch.arange(1000.0)
    there = sent.to(xpu)
    with counted_launches() as launches:
        there.add_(1)
    assert launches == [1]
    assert torch.equal(there.cpu(), sent)


def test_the_host_computes_where_there_is_no_other_device(xpu: torch.device) -> None:
    there = torch.arange(4, dtype=torch.float64).to(xpu)
    with counted_launches() as launches:
        twice = there * 2
    assert launches == [0]
    assert twice.tolist() == [0, 2, 4, 6]


Function = Callable[[torch.Tensor], torch.Tensor]
FUNCTIONS: dict[str, Function] = {
    "add": lambda x: x + 1,
    "half": lambda x: x.half() * 2,
    "bfloat16": lambda x: x.bfloat16() * 2,
    "int": lambda x: x.int() // 3,
    "sum": lambda x: x.sum(1),
    "argmax": lambda x: x.argmax(1),
    "cumsum": lambda x: x.cumsum(1),
    "sort": lambda x: x.sort(1).values,
    "softmax": lambda x: x.softmax(1),
    "layer_norm": lambda x: functional.layer_norm(x, (64,)),
    "transposed": lambda x: x.t().contiguous(),
    "cat": lambda x: torch.cat((x, x), 1),
    "index_add": lambda x: x.index_add(0, x.new_zeros(64, dtype=torch.long), x),
    "erfinv": lambda x: x.erfinv(),
    "matmul": lambda x: x @ x,
    "conv2d": lambda x: functional.conv2d(x.view(1, 1, 64, 64), x.view(-1, 1, 8, 8)),
    "max_pool2d": lambda x: functional.max_pool2d(x.view(1, 1, 64, 64), 2),
    "attention": lambda x: functional.scaled_dot_product_attention(
        *[x.view(1, 4, 16, 64)] * 3
    ),
    "random": lambda x: torch.randn_like(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_builds_and_launches(xpu: torch.device, name: str) -> None:
    function, here = FUNCTIONS[name], torch.zeros(64, 64)
    there = here.to(xpu)
    with counted_launches() as launches:
        result = function(there)
    expected = function(here)
    assert launches[0] >= 1
    assert result.device.type == "xpu"
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)


def test_a_training_step_launches_on_the_gpu_alone(xpu: torch.device) -> None:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 36, 5),
    ).to(xpu)
    optimizer = torch.optim.AdamW(model.parameters())
    images = torch.zeros(2, 3, 8, 8).to(xpu)
    labels = torch.zeros(2, dtype=torch.long).to(xpu)
    with counted_launches() as launches:
        functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    assert launches[0] > 10
    assert all(each.grad.device.type == "xpu" for each in model.parameters())


def test_compiled_code_is_one_launch(xpu: torch.device) -> None:
    compiled = torch.compile(lambda x: (x * 2 + 1).relu())
    there = torch.zeros(1000).to(xpu)
    compiled(there)
    with counted_launches() as launches:
        compiled(there)
    assert launches == [1]


def test_events_are_in_order(xpu: torch.device) -> None:
    start, end = (torch.xpu.Event(enable_timing=True) for _ in range(2))
    stream = torch.xpu.Stream(xpu)
    there = torch.zeros(1000).to(xpu)
    with torch.xpu.stream(stream):
        start.record()
        there.add_(1)
        end.record()
    end.synchronize()
    assert start.query()
    assert end.query()
    assert 0 <= start.elapsed_time(end) < 60_000
