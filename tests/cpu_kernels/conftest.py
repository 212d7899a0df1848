"""Kernels of CPU tensors, under the mapping that has them."""

from collections.abc import Iterator

import pytest
from rows_taken import Ran, rows_taken

import xpurt


@pytest.fixture
def mapped() -> Iterator[None]:
    """xpu:0 is the CPU device; PyTorch's kernels are in force before and after."""
    with xpurt.xpu_mapping("CPU"):
        yield
        xpurt.set_cpu_kernels("native")


@pytest.fixture
def ran(mapped: None) -> Ran:
    """The ops that rows computed for CPU tensors since the start of the test."""
    xpurt.op_report(reset=True)
    return rows_taken


@pytest.fixture
def sycl(ran: Ran) -> Iterator[Ran]:
    """Rows compute CPU tensors wherever they can."""
    with xpurt.cpu_kernels("sycl"):
        yield ran
