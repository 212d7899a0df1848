"""The packages that only this command needs, imported on demand."""

import importlib
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import TypeVar

from xpurt.startup.extras import MissingExtra

T = TypeVar("T")


def needs(module: str) -> ModuleType:
    """Imports `module`. Raises MissingExtra if PyTorch's databases need a package that
    is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] in ("torch", "xpurt"):
            raise  # the package is there, and a module inside of it is missing
        databases = f"PyTorch's databases of ops ({module})"
        raise MissingExtra(databases, missing.name, "test") from None


def progress_bar(total: int, title: str) -> Callable[[Iterable[T]], Iterator[T]]:
    """Wraps an iterable of `total` items so that a bar shows the progress.

    Without tqdm there is no bar; nothing else differs.
    """
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ModuleNotFoundError:
        return iter

    def wrap(items: Iterable[T]) -> Iterator[T]:
        yield from tqdm(items, total=total, desc=title, unit="pair", smoothing=0.05)

    return wrap
