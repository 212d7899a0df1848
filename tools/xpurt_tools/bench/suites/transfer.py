"""Copies between the CPU and xpu, against copies that stay on the CPU."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import cast

import torch
from torch import Tensor

import xpurt
from xpurt import _C
from xpurt.text.table import size
from xpurt_tools.bench.row import Row, Suite, Unavailable, Work

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30
SIZES = (4 * KB, 64 * KB, MB, 16 * MB, 256 * MB, GB)
LAZY_SIZES = (64 * KB, MB, 16 * MB, 256 * MB)
# Tensors in memory at once: the tensor, its copies, and what the allocators keep.
ROOM = 6


def _tensor(size_bytes: int) -> Tensor:
    """A tensor of this size. Raises Unavailable if there is too little memory."""
    free = _free_bytes()
    if ROOM * size_bytes > free:
        raise Unavailable(
            f"it wants {size(ROOM * size_bytes)} of memory, {size(free)} are free"
        )
    return torch.ones(size_bytes // torch.float32.itemsize)


def _free_bytes() -> int:
    return _C.host_memory()[1]


def _row(name: str, size_bytes: int, *, to_xpu: bool) -> Row:
    def prepare(device: torch.device) -> Work:
        x = _tensor(size_bytes)
        if device.type == "cpu":
            return Work(x.clone, size_bytes=2 * size_bytes, elements=x.numel())
        if to_xpu:
            return Work(lambda: x.to(device))
        there = x.to(device)
        return Work(there.cpu)

    return Row(f"{name} {size(size_bytes)}", prepare, long=size_bytes >= GB)


def _copied(x: Tensor, device: torch.device) -> Tensor:
    return x.clone() if device.type == "cpu" else x.to(device)


def _there_and_back(x: Tensor, device: torch.device) -> object:
    there = _copied(x, device)
    return there.clone() if device.type == "cpu" else there.cpu()


def _read_on_both_sides(x: Tensor, device: torch.device) -> object:
    there = _copied(x, device)
    seen = there.sum()
    back = there.clone() if device.type == "cpu" else there.cpu()
    return seen, back.sum()


def _lazy_row(
    name: str, size_bytes: int, work: Callable[[Tensor, torch.device], object]
) -> Row:
    def prepare(device: torch.device) -> Work:
        x = _tensor(size_bytes)
        if device.type == "cpu":
            return Work(
                lambda: work(x, device), size_bytes=4 * size_bytes, elements=x.numel()
            )
        lazy_copies = _lazy_copies()

        def lazily() -> object:
            with lazy_copies():
                return work(x, device)

        return Work(lazily)

    return Row(f"{name} {size(size_bytes)}", prepare)


def _lazy_copies() -> Callable[[], AbstractContextManager[object]]:
    found = getattr(xpurt, "lazy_copies", None)
    if found is None:
        raise Unavailable("this xpurt has no lazy_copies")
    return cast(Callable[[], AbstractContextManager[object]], found)


TRANSFER = Suite(
    "transfer",
    '.to("xpu") and .cpu(), 4 KB to 1 GB, against clone on the CPU',
    target=1.05,
    rows=(
        *(_row('.to("xpu")', each, to_xpu=True) for each in SIZES),
        *(_row(".cpu()", each, to_xpu=False) for each in SIZES),
    ),
)
TRANSFER_LAZY = Suite(
    "transfer-lazy",
    "there and back with lazy copies, against clone and clone",
    target=0.3,
    rows=(
        *(_lazy_row("there, back", each, _there_and_back) for each in LAZY_SIZES),
        *(_lazy_row("and read", each, _read_on_both_sides) for each in LAZY_SIZES),
    ),
)
