"""Raw memory of xpu:0, and a way to keep a stream busy."""

import ctypes
from collections.abc import Callable, Iterator

import dpctl
import dpctl.memory
import dpctl.program
import pytest
import torch

import xpurt
from xpurt import _C

SPIN = """
__kernel void spin(__global volatile uint* out, ulong rounds) {
  uint x = 1;
  for (ulong i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
  out[0] = x;
}
"""
ROUNDS = 50_000_000  # a few hundred milliseconds


@pytest.fixture(autouse=True)
def without_the_runtime_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """The allocator needs nothing of torch.xpu, which PyTorch initializes."""
    monkeypatch.setattr(torch.xpu, "_lazy_init", lambda: None)


@pytest.fixture
def memory() -> Iterator[None]:
    """The mapping CPU, with nothing allocated or cached; checks that it stays so."""
    with xpurt.xpu_mapping("CPU"):
        torch._C._accelerator_emptyCache()
        yield
        assert _C.live_memory() == (0, 0)
        torch._C._accelerator_emptyCache()
        assert _C.memory_snapshot() == []


def stats() -> dict[str, int]:
    """c10's statistics of xpu:0, flattened: "allocated_bytes.all.current"."""
    flat: dict[str, int] = {}

    def add(prefix: str, value: dict[str, object] | int) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                add(f"{prefix}.{key}" if prefix else key, inner)  # type: ignore[arg-type]
        else:
            flat[prefix] = value

    add("", torch._C._accelerator_getDeviceStats(0))
    return flat


def queue_of(stream: torch.Stream) -> dpctl.SyclQueue:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    # dpctl copies the queue.
    return dpctl.SyclQueue(new(stream.native_handle, b"SyclQueueRef", None))


class Bytes:
    def __init__(self, address: int, size: int, queue: dpctl.SyclQueue) -> None:
        self.__sycl_usm_array_interface__ = {
            "data": (address, False),
            "shape": (size,),
            "strides": None,
            "typestr": "|u1",
            "version": 1,
            "syclobj": queue,
        }


@pytest.fixture
def busy(memory: None) -> Callable[[torch.Stream, int], dpctl.SyclEvent]:
    """busy(stream, address) queues work that writes 4 bytes there, much later."""
    kernels: dict[dpctl.SyclContext, dpctl.program.SyclKernel] = {}

    def submit(stream: torch.Stream, address: int) -> dpctl.SyclEvent:
        queue = queue_of(stream)
        kernel = kernels.get(queue.sycl_context)
        if kernel is None:
            program = dpctl.program.create_program_from_source(queue, SPIN)
            kernel = kernels[queue.sycl_context] = program.get_sycl_kernel("spin")
        out = dpctl.memory.as_usm_memory(Bytes(address, 512, queue))
        return queue.submit_async(kernel, [out, ctypes.c_uint64(ROUNDS)], [1])

    return submit


def is_complete(event: dpctl.SyclEvent) -> bool:
    return bool(event.execution_status == dpctl.event_status_type.complete)
