"""The code that Inductor generated for a graph, for those who show it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_kept: ContextVar[list[str] | None] = ContextVar("xpurt_generated_code", default=None)


@contextmanager
def keeping() -> Iterator[list[str]]:
    """The list has the code of each graph that is compiled within it, or that comes from
    the cache on disk."""
    found: list[str] = []
    token = _kept.set(found)
    try:
        yield found
    finally:
        _kept.reset(token)


def keep(compiled: Any) -> None:
    """compiled: Inductor's compiled graph."""
    kept = _kept.get()
    if kept is not None:
        kept.append(compiled.source_code)
