"""The list of ops, and docs/ops.md, which is written from it."""

import re
from pathlib import Path

import pytest

from xpurt.command_line import cli
from xpurt.kernels import ROWS, Entry, op_entries
from xpurt.text.table import table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ops.md"


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    return op_entries()


def test_the_page_is_what_the_command_writes(tmp_path: Path) -> None:
    """If not: python -m xpurt ops --markdown docs/ops.md."""
    written = tmp_path / "ops.md"
    assert cli.main(["ops", "--markdown", str(written)]) == 0
    assert PAGE.read_text() == written.read_text()


def test_every_row_has_an_entry_with_overloads_and_a_file(
    entries: list[Entry],
) -> None:
    assert sorted(entry.op for entry in entries) == sorted(row.aten for row in ROWS)
    for entry in entries:
        assert entry.overloads, f"{entry.op}: no overload is bound to the row"
    assert one(entries, "add").file == "kernels/rows/binary.py"
    assert one(entries, "mm").file == "kernels/rows/reductions.py"


def one(entries: list[Entry], op: str) -> Entry:
    (found,) = [entry for entry in entries if entry.op == op]
    return found


def test_overloads_are_those_that_are_bound(entries: list[Entry]) -> None:
    add = one(entries, "add")
    assert add.kind == "pointwise"
    assert {"Tensor", "out", "_Tensor"} <= set(add.overloads)
    # Names of dimensions have no meaning to a reduction's row.
    assert "names_dim" not in one(entries, "sum").overloads
    # Differentiated through its parts, so it has no kernel of its own.
    assert one(entries, "std").overloads == ("correction", "correction_out")
    # A row of an op in place may write to lists of tensors.
    assert "" in one(entries, "_fused_adam_").overloads


def test_the_list_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    assert cli.main(["ops"]) == 0
    head, _, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["op", "overloads", "kind", "dtypes", "file"]
    assert len(lines) == len(ROWS)


@pytest.mark.parametrize("columns", [80, 120])
def test_no_line_is_longer_than_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert cli.main(["ops"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    # Nothing is lost: the words of a column, put together.
    wide = table(["op", "file"], [("a_b_c d", "x/y")], width=12)
    assert "a_b_c" in wide
    assert "x/y" in wide


def test_the_readme_leaves_the_count_to_the_page() -> None:
    """It would be wrong with the next row."""
    readme = PAGE.parents[1].joinpath("README.md").read_text()
    assert re.findall(r"\d[\d,]* ops\b", readme) == []


def test_a_page_that_cannot_be_written_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["ops", "--markdown", str(tmp_path / "no" / "ops.md")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "No such file or directory" in line
