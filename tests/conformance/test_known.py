"""The file of known failures is data, and strict."""

from pathlib import Path

import pytest

from xpurt_tools.conformance import BadFile
from xpurt_tools.conformance.known import (
    Known,
    read_known,
    stale_entries,
    unknown_failures,
)
from xpurt_tools.conformance.results import Result
from xpurt_tools.conformance.settings import PACKAGED_KNOWN_FAILURES

ADD = Result("add", "float32", "pointwise", "failed")
ADD_INT = Result("add", "int64", "pointwise", "passed")
SVD = Result("linalg.svd", "float32", "linalg", "crashed")
GONE = Result("geqrf", "int64", "linalg", "not on the CPU")
RESULTS = [ADD, ADD_INT, SVD, GONE]


def entry(mapping: str, op: str, dtype: str) -> Known:
    return Known(mapping, op, dtype, "because", 1)


def test_the_packaged_file_is_readable_and_gives_reasons() -> None:
    for known in read_known(PACKAGED_KNOWN_FAILURES):
        assert len(known.reason.split()) > 3, known


def test_lines_are_entries_with_reasons(tmp_path: Path) -> None:
    path = tmp_path / "known.txt"
    path.write_text("# a comment\n\nCPU*  add  float32   rounds  otherwise \n")
    (known,) = read_known(path)
    assert known == Known("CPU*", "add", "float32", "rounds  otherwise", 3)


def test_an_entry_may_be_for_a_series_of_pytorch(tmp_path: Path) -> None:
    path = tmp_path / "known.txt"
    path.write_text("2.1[45]:CPU*  add  float32  rounds otherwise there\n")
    (known,) = read_known(path)
    assert known == Known(
        "CPU*", "add", "float32", "rounds otherwise there", 1, "2.1[45]"
    )
    assert known.of_run("CPU+sycl", "2.15")
    assert not known.of_run("GPU", "2.15")
    assert not known.of_run("CPU", "2.13")
    assert entry("CPU*", "add", "float32").of_run("CPU", "2.13")
    assert str(known) == "line 1: 2.1[45]:CPU* add float32"


def test_a_line_without_a_reason_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "known.txt"
    path.write_text("* add float32\n")
    with pytest.raises(BadFile, match=r"known\.txt:1"):
        read_known(path)


def test_only_failures_that_no_entry_covers_are_unknown() -> None:
    assert unknown_failures(RESULTS, [], "CPU") == [ADD, SVD]
    known = [entry("*", "add", "*"), entry("GPU", "linalg.*", "*")]
    assert unknown_failures(RESULTS, known, "CPU") == [SVD]
    assert unknown_failures(RESULTS, known, "GPU") == []


def test_an_entry_that_passes_is_stale() -> None:
    passing = entry("CPU*", "add", "int64")
    failing = [entry("*", "add", "*"), entry("*", "linalg.svd", "*")]
    assert stale_entries(RESULTS, [passing, *failing], "CPU", whole=True) == [passing]
    assert stale_entries(RESULTS, [passing], "CPU+sycl", whole=True) == [passing]


def test_what_was_not_run_is_not_stale() -> None:
    assert (
        stale_entries(RESULTS, [entry("GPU", "add", "int64")], "CPU", whole=True) == []
    )
    assert stale_entries(RESULTS, [entry("*", "cos", "*")], "CPU", whole=True) == []
    assert stale_entries(RESULTS, [entry("*", "geqrf", "*")], "CPU", whole=True) == []


def test_a_part_of_the_pairs_judges_no_entry() -> None:
    assert (
        stale_entries(RESULTS, [entry("*", "add", "int64")], "CPU", whole=False) == []
    )
