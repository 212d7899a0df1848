"""Runs ops under the kernel policy "sycl", and sees that no other form was taken."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from xpurt import _C, kernel_policy

T = TypeVar("T")
ON_THE_QUEUE = {"sycl", "onednn"}


def tiers_of(op: str) -> set[str]:
    """The tiers that `op` ("aten::add", any overload) was counted on."""
    return {row[1] for row in _C.op_report() if row[0].split(".")[0] == op}


def check_on_queue(*ops: str) -> None:
    """Each op ran, and on the queue alone."""
    for op in ops:
        tiers = tiers_of(op)
        assert tiers, f"{op} did not run on xpu"
        assert tiers <= ON_THE_QUEUE, f"{op} ran on {tiers}"


def all_tiers() -> set[str]:
    """The tiers of all counted ops, without moves in memory that the host reads."""
    moves = ("aten::copy_", "aten::_local_scalar_dense")
    return {
        row[1] for row in _C.op_report() if not (row[1] == "native" and row[0] in moves)
    }


@contextmanager
def forced(op: str) -> Iterator[None]:
    """A block under the policy "sycl", in which `op` must run, and on the queue."""
    torch.xpu.synchronize()
    _C.reset_op_report()
    with kernel_policy("sycl"):
        yield
    torch.xpu.synchronize()
    # PyTorch runs some ops through others, which then have the rows.
    tiers = tiers_of(op) or {row[1] for row in _C.op_report()}
    assert tiers, f"{op} did not run on xpu"
    assert tiers <= ON_THE_QUEUE, f"{op} ran on {tiers}"


def on_queue(op: str, call: Callable[[], T]) -> T:
    with forced(op):
        return call()
