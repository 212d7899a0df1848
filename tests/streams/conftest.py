"""Work that lasts, on any device."""

import ctypes
from collections.abc import Iterator
from typing import Any

import dpctl.memory
import dpctl.program
import pytest
import torch
from spinning import Spin

from xpurt import streams

SPIN = """
__kernel void spin(__global volatile uint* out, ulong rounds) {
  uint x = 1;
  for (ulong i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
  out[0] = x;
}
"""
ROUNDS = 30_000_000  # about a hundred milliseconds on one core


@pytest.fixture
def spin(xpu: torch.device) -> Iterator[Spin]:
    """`spin(stream, rounds)` submits a kernel of one work-item that takes a while."""
    kept: list[Any] = []

    def submit(stream: torch.Stream, rounds: int = ROUNDS) -> None:
        queue = streams.sycl_queue(stream)
        program = dpctl.program.create_program_from_source(queue, SPIN)
        result = dpctl.memory.MemoryUSMDevice(64, queue=queue)
        kept.extend((program, result))
        queue.submit_async(
            program.get_sycl_kernel("spin"),
            [result, ctypes.c_ulonglong(rounds)],
            [1],
            [1],
        )

    yield submit
    torch.xpu.synchronize()
    kept.clear()
