"""The graphs that Inductor compiled, for those who show their code or call it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_kept: ContextVar[list[Any] | None] = ContextVar("xpurt_generated_code", default=None)


@contextmanager
def keeping() -> Iterator[list[Any]]:
    """The list has each graph that is compiled within it, or that comes from the cache on
    disk, as Inductor's compiled graph."""
    found: list[Any] = []
    token = _kept.set(found)
    try:
        yield found
    finally:
        _kept.reset(token)


def keep(compiled: Any) -> None:
    """compiled: Inductor's compiled graph."""
    kept = _kept.get()
    if kept is not None:
        kept.append(compiled)
