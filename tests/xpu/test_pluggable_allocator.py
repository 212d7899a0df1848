"""torch.xpu.memory.XPUPluggableAllocator: memory from functions of the user's own."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import dpctl
import pytest
import torch
from own_process import output

# dpctl's C functions take the very pointers that the allocator is given.
SOURCE = """
#include <stddef.h>
void* DPCTLmalloc_shared(size_t bytes, void* queue);
void DPCTLfree_with_queue(void* pointer, void* queue);

int allocated, freed, last_device = -1;
size_t last_bytes;
void* last_queue;

void* give(size_t bytes, int device, void* queue) {
  ++allocated;
  last_bytes = bytes;
  last_device = device;
  last_queue = queue;
  return DPCTLmalloc_shared(bytes, queue);
}
void take(void* pointer, size_t bytes, int device, void* queue) {
  ++freed;
  last_bytes = bytes;
  DPCTLfree_with_queue(pointer, queue);
}
void* give_nothing(size_t bytes, int device, void* queue) { return 0; }
static char of_the_host[1 << 21];
void* give_host(size_t bytes, int device, void* queue) { return of_the_host; }
void take_nothing(void* pointer, size_t bytes, int device, void* queue) {}
"""

MAPPINGS = ["CPU", "GPU", "AUTO"]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    compiler = os.environ.get("CC", "gcc")
    if shutil.which(compiler) is None:
        pytest.skip(f"needs a C compiler; {compiler} is not there")
    folder = tmp_path_factory.mktemp("allocator")
    (folder / "allocator.c").write_text(SOURCE)
    dpctl_folder = Path(dpctl.__file__).parent
    path = folder / "allocator.so"
    subprocess.run(
        [
            *(compiler, "-shared", "-fPIC", "-Wall", str(folder / "allocator.c")),
            *("-o", str(path), f"-L{dpctl_folder}", "-lDPCTLSyclInterface"),
            f"-Wl,-rpath,{dpctl_folder}",
        ],
        check=True,
    )
    return str(path)


def start(library: str, give: str = "give", take: str = "take") -> str:
    return f"""
import ctypes, gc, torch, xpurt
from torch.xpu.memory import XPUPluggableAllocator, change_current_allocator
allocator = XPUPluggableAllocator({library!r}, {give!r}, {take!r})
library = ctypes.CDLL({library!r})
def counted(name, kind=ctypes.c_int):
    return kind.in_dll(library, name).value
"""


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_every_tensor_comes_from_it(library: str, mapping: str) -> None:
    code = (
        start(library)
        + """
change_current_allocator(allocator)
first = torch.arange(1000, device="xpu", dtype=torch.float32)
print(counted("allocated"), counted("last_bytes", ctypes.c_size_t), counted("last_device"))
queue = counted("last_queue", ctypes.c_void_p)
print(queue == torch.xpu.current_stream().sycl_queue)
second = first * 2 + 1
print(second.sum().item() == 2 * 499500 + 1000)
before = counted("freed")
del first
print(counted("freed") - before, torch.xpu.memory_allocated() > 0)
del second
gc.collect()
torch.xpu.synchronize()
print(counted("allocated") == counted("freed"), torch.xpu.memory_reserved())
"""
    )
    seen = output(code, XPURT_MAPPING=mapping, XPURT_FALLBACK="silent").split()
    assert seen[:3] == ["1", "4000", "0"]
    assert seen[3:] == ["True", "True", "1", "True", "True", "0"]


def test_training(library: str) -> None:
    code = (
        start(library)
        + """
change_current_allocator(allocator)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(),
                            torch.nn.Linear(30, 1)).to("xpu")
optimizer = torch.optim.Adam(model.parameters())
x = torch.randn(50, 20).to("xpu")
for _ in range(5):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
print(bool(loss < 1))
del model, optimizer, x, loss
gc.collect()
print(counted("allocated") - counted("freed"), counted("allocated") > 50)
"""
    )
    assert output(code).split() == ["True", "0", "True"]


def test_memory_comes_back_after_the_work_that_is_queued(library: str) -> None:
    code = (
        start(library)
        + """
import time
from xpurt import _C
change_current_allocator(allocator)
tensor = torch.ones(1000, device="xpu")
torch.xpu.synchronize()
stream = torch.xpu.Stream()
_C._submit_sleep(stream.stream_id, 0, 0.4)
tensor.record_stream(stream)
began = time.monotonic()
del tensor
print(counted("freed"), time.monotonic() - began > 0.3)
"""
    )
    assert output(code).split() == ["1", "True"]


def test_too_late(library: str) -> None:
    code = (
        start(library)
        + """
torch.xpu.init()
try:
    change_current_allocator(allocator)
except RuntimeError as error:
    print(error)
current = torch.xpu.memory._get_current_allocator()
print(isinstance(current.allocator(), torch._C._xpu_XPUAllocator))
change_current_allocator(current)
"""
    )
    first, second = output(code).splitlines()
    assert "cannot be changed any more" in first
    assert second == "True"


def test_the_allocator_in_use_is_the_one_that_was_set(library: str) -> None:
    code = (
        start(library)
        + """
change_current_allocator(allocator)
print(torch.xpu.memory._get_current_allocator().allocator() is allocator.allocator())
"""
    )
    assert output(code) == "True"


def test_it_has_no_memory(library: str) -> None:
    code = (
        start(library, give="give_nothing")
        + """
change_current_allocator(allocator)
try:
    torch.empty(10, device="xpu")
except torch.OutOfMemoryError:
    print("out of memory")
"""
    )
    assert output(code) == "out of memory"


def test_memory_that_the_device_cannot_use(library: str) -> None:
    code = (
        start(library, give="give_host", take="take_nothing")
        + """
change_current_allocator(allocator)
try:
    torch.empty(10, device="xpu")
except RuntimeError as error:
    print(error)
"""
    )
    seen = output(code, XPURT_MAPPING="GPU", XPURT_VIRTUAL_GPU="strict")
    assert "cannot use: it is not unified shared memory" in seen
    assert "sycl::malloc_shared" in seen


def test_a_pool_s_segments_come_from_it(library: str, xpu: torch.device) -> None:
    allocator = torch.xpu.memory.XPUPluggableAllocator(library, "give", "take")
    counts = ctypes.CDLL(library)
    allocated, freed = (
        ctypes.c_int.in_dll(counts, name) for name in ("allocated", "freed")
    )
    before = allocated.value, freed.value
    pool = torch.xpu.MemPool(allocator.allocator())
    assert pool.allocator is allocator.allocator()
    with torch.xpu.use_mem_pool(pool):
        tensors = [torch.ones(1000, device=xpu) for _ in range(5)]
    assert allocated.value == before[0] + 1
    size = ctypes.c_size_t.in_dll(counts, "last_bytes").value
    assert size == pool.snapshot()[0]["total_size"] == 2 << 20
    assert sum(tensors).sum().item() == 5000  # type: ignore[union-attr]
    del tensors
    torch.xpu.synchronize()
    del pool
    assert freed.value == before[1] + 1
