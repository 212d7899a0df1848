"""What C++ reads of all rows. The disk cache keeps it.

To import the rows and to describe them takes a tenth of a second. Most processes build
no kernel, and need nothing else of them.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import torch

from xpurt.kernels.cache.disk_cache import DiskCache

_FOLDER = Path(__file__).parent
# The folders from whose modules the descriptions are made.
_SOURCES = ("kinds", "rows")


class DescribedRows(TypedDict):
    """`rows` as `_C.add_rows` takes them, `wider_types` as `_C.add_wider_types` does, and
    `own_ops`: the schemas of xpurt's own ops that have rows."""

    rows: list[dict[str, object]]
    wider_types: list[dict[str, object]]
    own_ops: list[str]


def described_rows(kept: DiskCache | None) -> DescribedRows:
    """The descriptions in `kept`, if they are of the rows that are there now. Else they
    are made, and kept."""
    identity = identity_of_rows()
    if kept is None or identity is None:
        return describe()
    text = kept.load(identity)
    if text:
        found: DescribedRows = json.loads(text)
        return found
    made = describe()
    # Where it can't be kept, the first kernel that is built warns.
    kept.store(identity, json.dumps(made).encode(), warns=False)
    return made


def identity_of_rows() -> bytes | None:
    """Another one after each change of a module that describes rows, by the sizes and
    times of the files, as Python knows its own kept bytecode, and for each version of
    PyTorch. None if the modules are no files."""
    files = sorted(_files())
    if len(files) < len(_SOURCES):
        return None
    return f"described rows {torch.__version__} {files}".encode()


def _files() -> Iterator[tuple[str, int, int]]:
    for path in (p for folder in _SOURCES for p in (_FOLDER / folder).rglob("*.py")):
        status = path.stat()
        yield str(path), status.st_size, status.st_mtime_ns


def describe() -> DescribedRows:
    """The descriptions, made from the rows."""
    from xpurt.kernels.kinds.custom_kernel import CustomKernel
    from xpurt.kernels.rows.table import ROWS, described
    from xpurt.kernels.rows.wider_types import ROWS as WIDER_ROWS

    return {
        "rows": [described(index, row) for index, row in enumerate(ROWS)],
        "wider_types": [row.described() for row in WIDER_ROWS],
        "own_ops": [
            row.aten.removeprefix("xpurt::") + row.schema
            for row in ROWS
            if isinstance(row, CustomKernel) and row.schema
        ],
    }
