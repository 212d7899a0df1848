"""The tiers that the ops of a pair used on xpu, as counted by `xpurt.op_report`."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import xpurt

TIERS = ("sycl", "onednn", "native", "copy")


class Tiers:
    """Counts calls per tier, inside of `seen` only."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.on_kernels: set[str] = set()  # ops that took a kernel or a primitive
        self._seeing = False

    @contextmanager
    def seen(self) -> Iterator[None]:
        """Counts the ops that run on xpu in the block."""
        xpurt.op_report(reset=True)
        self._seeing = True
        try:
            yield
        finally:
            self._collect()
            self._seeing = False

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """Excludes a part of `seen` that only prepares a call."""
        if not self._seeing:
            yield
            return
        self._collect()
        try:
            yield
        finally:
            xpurt.op_report(reset=True)

    def _collect(self) -> None:
        for row in xpurt.op_report(reset=True):
            self.calls[row.tier] += row.calls
            if row.tier in ("sycl", "onednn"):
                self.on_kernels.add(row.op.removeprefix("aten::").split(".")[0])
