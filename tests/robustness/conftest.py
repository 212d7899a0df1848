"""Runs ops under every policy: chosen by cost, on the queue, by PyTorch's kernel.

Most of the time goes into building kernels, which every device needs anew. So by
default combinations that repeat others are left out: they are marked `slow`.
"""

from collections.abc import Iterator

import pytest
import torch

import xpurt
from xpurt import _C


@pytest.fixture(params=["auto", "sycl", "native"])
def policy(request: pytest.FixtureRequest, xpu: torch.device) -> Iterator[str]:
    with xpurt.kernel_policy(request.param):
        yield request.param


@pytest.fixture(autouse=True)
def fallback_mode() -> Iterator[None]:
    """No warning of copies, unless a test asks for it."""
    mode = _C.testing.fallback_mode()
    _C.set_fallback_mode("silent")
    yield
    _C.set_fallback_mode(mode)


# Under CPU, tensors of the size of these tests go to PyTorch's kernels anyway.
DEFAULT = {("CPU", "sycl"), ("CPU", "native"), ("GPU", "auto"), ("AUTO", "auto")}
# What is about layouts is about our rows; PyTorch's kernels:
# tests/native/test_unboxed.py.
ROWS_ONLY = {
    "test_out_resizing.py",
    "test_memory_formats.py",
    "test_degenerate_shapes.py",
}
ON_TWO_DEVICES = {"test_random_programs.py", "test_queued_reads.py", "test_aliasing.py"}


def is_slow(item: pytest.Function) -> bool:
    params = item.callspec.params if hasattr(item, "callspec") else {}
    mapping = params.get("xpu", "CPU")
    if "policy" in item.fixturenames and (mapping, params["policy"]) not in DEFAULT:
        return True
    if item.path.name in ROWS_ONLY:
        return (mapping, params["policy"]) != ("CPU", "sycl")
    if mapping == "GPU":
        return False
    return mapping != "CPU" and item.path.name not in ON_TWO_DEVICES


# Before -m looks at the marks. The hook sees the items of all folders.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        here = "/robustness/" in item.nodeid and isinstance(item, pytest.Function)
        if here and is_slow(item):
            item.add_marker("slow")
