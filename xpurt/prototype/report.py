"""Ops of prototypes in the report of ops."""

import functools

from xpurt import _prototype
from xpurt.kernels import OpRow, add_rows


@functools.cache
def join() -> None:
    """The report has them from now on. A second call does nothing."""
    add_rows(_rows)


def _rows(reset: bool) -> list[OpRow]:
    found = []
    for device in _prototype.prototypes():
        found += [
            OpRow(
                op,
                "vendor" if own else "alias",
                device,
                calls,
                size_bytes,
                seconds * 1e3,
            )
            for op, own, calls, size_bytes, seconds in _prototype.prototype_calls(
                device
            )
        ]
        if reset:
            _prototype.reset_prototype_calls(device)
    return found
