"""What C++ reads of all rows. The disk cache keeps it.

To import the rows and to describe them takes a tenth of a second. Most processes build
no kernel, and need nothing else of them.
"""

import hashlib
import json
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
    """Another one after each change of a module that describes rows, and for each version
    of PyTorch. By the contents: installed files may have the time of any build. None if
    the modules are no files."""
    files = sorted(p for folder in _SOURCES for p in (_FOLDER / folder).rglob("*.py"))
    if not files:
        return None
    content = hashlib.sha256()
    for path in files:
        content.update(f"{path.relative_to(_FOLDER)}\n".encode())
        content.update(path.read_bytes())
    return f"described rows {torch.__version__} {content.hexdigest()}".encode()


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
