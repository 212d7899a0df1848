"""The pairs to check: an entry of the databases and a dtype."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch

from xpurt_tools.conformance import gpu_types
from xpurt_tools.conformance.databases import Entry

DTYPES = (
    "float32",
    "float64",
    "bfloat16",
    "float16",
    "int64",
    "int32",
    "bool",
    "uint8",
    "complex64",
)


@dataclass(frozen=True, slots=True)
class Pair:
    """The names of an entry and of a dtype; each pair has one result."""

    name: str
    dtype: str
    category: str


def pairs(
    entries: Iterable[Entry],
    dtypes: tuple[str, ...] = DTYPES,
    patterns: tuple[str, ...] = ("*",),
    sample: int = 1,
) -> list[Pair]:
    """The pairs that PyTorch lists for the CPU, in the order of the databases.

    sample: one in this many of each entry's dtypes is run, and at least one. The choice
    depends on the name alone, so that a run can be repeated, and over all entries each
    dtype occurs.
    """
    found = []
    for entry in entries:
        if not _matches(entry, patterns):
            continue
        of_entry = [
            Pair(entry.name, dtype, entry.category)
            for dtype in dtypes
            if getattr(torch, dtype) in entry.dtypes
        ]
        if not of_entry:
            continue
        first = zlib.crc32(entry.name.encode()) % min(sample, len(of_entry))
        found += of_entry[first::sample]
    return found


def gpu_pairs(
    entries: Iterable[Entry],
    dtypes: tuple[str, ...] = gpu_types.DTYPES,
    patterns: tuple[str, ...] = ("*",),
    sample: int = 1,
) -> list[Pair]:
    """The pairs that PyTorch lists for a GPU, and not for the CPU. They are a category.

    sample: one in this many of all of them, and at least one if there are any.
    """
    found = [
        Pair(entry.name, dtype, gpu_types.CATEGORY)
        for entry in entries
        if _matches(entry, patterns)
        and not any(fnmatchcase(entry.name, each) for each in gpu_types.NOT_COMPARED)
        for dtype in dtypes
        if getattr(torch, dtype) in entry.gpu_dtypes
    ]
    return found[::sample]


def left_out(
    entries: Iterable[Entry],
    dtypes: tuple[str, ...] = DTYPES,
    patterns: tuple[str, ...] = ("*",),
) -> int:
    """The number of pairs of an entry and a dtype that PyTorch lacks on the CPU."""
    return sum(
        getattr(torch, dtype) not in entry.dtypes
        for entry in entries
        if _matches(entry, patterns)
        for dtype in dtypes
    )


def _matches(entry: Entry, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(entry.name, pattern) for pattern in patterns)
