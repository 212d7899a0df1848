"""Passes the rows to the dispatcher, and their sources to the builder of programs."""

import atexit
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NoReturn

import torch

from xpurt import _C
from xpurt.config import config
from xpurt.errors import KernelBuildError
from xpurt.kernels.cache.disk_cache import DiskCache
from xpurt.kernels.described_rows import described_rows

if TYPE_CHECKING:
    from xpurt.kernels.sources.source import DeviceTraits

# The rows and what makes sources of them are imported by the functions that need them:
# see described_rows.


def make_source(key: str, device: "DeviceTraits") -> tuple[str, str]:
    """The name and the source of the kernel with this key."""
    from xpurt.kernels.rows.table import ROWS
    from xpurt.kernels.sources.source import source_of
    from xpurt.kernels.sources.typed_functions import kept_source

    if key.startswith("compiled;"):
        made = kept_source(key, device)
        return made.entry, made.text
    index, template, *fields = key.split(";")
    source = source_of(ROWS[int(index)], template, fields, device)
    return source.entry, source.text


_LINES = 4  # of a driver's log, in a summary


@cache
def kernel_cache() -> DiskCache:
    """The disk cache, in the folder and of the size that the environment sets. Raises
    ConfigError."""
    return DiskCache(config().cache_folder, config().cache_size_bytes)


def make_form(index: int, name: str, overload: str) -> str:
    """The name of the op that computes an overload of the row by other ops."""
    from xpurt.kernels.kinds.decomposed import Decomposed, define
    from xpurt.kernels.rows.table import ROWS

    row = ROWS[index]
    assert isinstance(row, Decomposed)
    return define(row, name, overload)


def numbered(source: str) -> str:
    return "\n".join(f"{n:4}  {line}" for n, line in enumerate(source.split("\n"), 1))


def fail(device: str, entry: str, source: str, log: str) -> NoReturn:
    """Raises KernelBuildError for a source that the driver did not build."""
    error = KernelBuildError(
        f"kernel {entry} does not build for {device}. The driver says:\n{log}\n"
        f"The source is:\n{numbered(source)}\n"
        'xpurt.set_kernel_policy("native") goes on without kernels of xpurt\'s own.'
    )
    first = "\n".join(log.strip().splitlines()[:_LINES])
    error.summary = f"the driver of {device} refuses the kernel {entry}:\n{first}"
    raise error


@cache
def _own_ops(schemas: Sequence[str]) -> torch.library.Library:
    """Defines xpurt's own ops, which rows of other ops call."""
    library = torch.library.Library("xpurt", "FRAGMENT")  # type: ignore[no-untyped-call]
    for schema in schemas:
        library.define(schema)  # type: ignore[no-untyped-call]
    return library


@cache
def register() -> None:
    """Registers every row for its op. The first placement of devices calls it.

    It is not called at import: the lookup of all schemas takes as long as the rest of
    `import xpurt`.
    """
    kept = kernel_cache() if config().cache_size_bytes > 0 else None
    made = described_rows(kept)
    _own_ops(tuple(made["own_ops"]))
    _C.set_source_callbacks(make_source, fail)
    _C.set_form_maker(make_form)
    if kept is not None:
        _C.set_binary_callbacks(kept.load, kept.store)
    _C.add_rows(made["rows"])
    _C.add_wider_types(made["wider_types"])
    # The thread that builds kernels needs the interpreter and the driver.
    atexit.register(_C.stop_builds)
