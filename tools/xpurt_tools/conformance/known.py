"""The file of known failures: data, one per line, checked strictly.

    # mapping  op  dtype  reason
    *       linalg.eig     complex64  why it is not, or cannot be, the same
    GPU*    nn.LSTM        *          ...
    *       bincount       int64:0.dim0*  ...

Mapping, op and dtype are shell patterns. After a colon the dtype may be followed by a
pattern of variants, with underscores for spaces: the entry covers no other failures. The mapping is compared with the label of a
run: "CPU", "AUTO+sycl". Before it may stand the series of PyTorch that the entry is for,
as in "2.1[45]:CPU*". An entry is an error if all of its pairs pass: it has to be removed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import torch

from xpurt.torch_versions import series_of
from xpurt_tools.conformance.results import Result

SERIES = series_of(torch.__version__)


@dataclass(frozen=True, slots=True)
class Known:
    """One line of the file. line: its number, from 1. series and variant: "*" where
    none is given."""

    mapping: str
    op: str
    dtype: str
    reason: str
    line: int
    series: str = "*"
    variant: str = "*"

    def of_run(self, label: str, series: str = SERIES) -> bool:
        return fnmatchcase(label, self.mapping) and fnmatchcase(series, self.series)

    def covers(self, result: Result) -> bool:
        """Whether the entry is about the pair."""
        return fnmatchcase(result.name, self.op) and fnmatchcase(
            result.dtype, self.dtype
        )

    def covers_variant(self, variant: str) -> bool:
        return fnmatchcase(variant.replace(" ", "_"), self.variant)

    def __str__(self) -> str:
        series = "" if self.series == "*" else f"{self.series}:"
        variant = "" if self.variant == "*" else f":{self.variant}"
        return (
            f"line {self.line}: {series}{self.mapping} {self.op} {self.dtype}{variant}"
        )


class BadFile(Exception):
    """A line of the file is not an entry."""


def read_known(path: Path) -> list[Known]:
    """The entries of the file. Raises BadFile, which names the line."""
    found = []
    for number, text in enumerate(path.read_text().splitlines(), 1):
        line = text.strip()
        if not line or line.startswith("#"):
            continue
        try:
            run, op, dtype, reason = line.split(maxsplit=3)
        except ValueError:
            raise BadFile(
                f"{path}:{number}: {line!r} is not an entry: a mapping, an op, a dtype "
                "and the reason are wanted"
            ) from None
        series, _, mapping = run.rpartition(":")
        dtype, _, variant = dtype.partition(":")
        found.append(
            Known(mapping, op, dtype, reason, number, series or "*", variant or "*")
        )
    return found


def unknown_failures(
    results: Iterable[Result], known: Sequence[Known], label: str
) -> list[Result]:
    """The failed results with a failure that no entry covers."""
    entries = [entry for entry in known if entry.of_run(label)]

    def is_known(result: Result) -> bool:
        of_pair = [entry for entry in entries if entry.covers(result)]
        return all(
            any(entry.covers_variant(variant) for entry in of_pair)
            for variant in _failed_variants(result)
        )

    return [
        result
        for result in results
        if result.counts and not result.ok and not is_known(result)
    ]


def stale_entries(
    results: Sequence[Result], known: Sequence[Known], label: str, *, whole: bool
) -> list[Known]:
    """The entries that cover results of this run, if all of these pass.

    whole: every pair was run, with every sample. Otherwise nothing is returned: the
    pairs or samples that were left out could fail.
    """
    if not whole:
        return []
    stale = []
    for entry in known:
        covered = [r for r in results if r.counts and entry.covers(r)]
        fails = any(
            entry.covers_variant(variant)
            for result in covered
            for variant in _failed_variants(result)
        )
        if entry.of_run(label) and covered and not fails:
            stale.append(entry)
    return stale


def _failed_variants(result: Result) -> Iterable[str]:
    """Those of a failed result; "" where it ended without a name."""
    return result.failed_variants or ([] if result.ok else [""])
