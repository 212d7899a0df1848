"""Lazy graphs in the report of ops."""

import functools

from xpurt import _lazy
from xpurt.kernels import OpRow, add_rows


@functools.cache
def join() -> None:
    """The report has them from now on. A second call does nothing."""
    add_rows(_rows)


def _rows(reset: bool) -> list[OpRow]:
    found = [
        OpRow(graph, form, device, calls, 0, seconds * 1e3)
        for graph, form, device, calls, seconds in _lazy.lazy_graph_runs()
    ]
    if reset:
        _lazy.reset_lazy_graph_runs()
    return found
