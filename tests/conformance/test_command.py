"""The command from end to end, with the made-up ops: reports and exit codes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from xpurt_tools.conformance import Settings, run_conformance


@pytest.fixture
def known(tmp_path: Path) -> Path:
    path = tmp_path / "known.txt"
    path.write_text("")
    return path


def test_a_failure_that_is_not_known_is_the_exit_code(
    fake: Settings, known: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings = replace(fake, ops=("right", "wrong_by_one"), known_failures=known)
    files = tmp_path / "out.json", tmp_path / "out.html"
    assert run_conformance([settings], *files) == 1
    text = capsys.readouterr().out
    assert "2 of 4 pairs are right on xpu, 50.00%" in text
    assert "failed: wrong_by_one float32" in text
    assert "call, sample 0: (float32[3x4], (), {})" in text
    assert "2 failures are not known: wrong_by_one float32, wrong_by_one int64" in text
    data = json.loads(files[0].read_text())
    assert (data["pairs"], data["passed"], len(data["results"])) == (4, 2, 4)
    assert "wrong_by_one" in files[1].read_text()


@pytest.mark.rest
def test_known_failures_are_well_and_known_passes_are_not(
    fake: Settings, known: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = replace(fake, ops=("right", "wrong_by_one"), known_failures=known)
    known.write_text("* wrong_by_one * it adds one, which is why it is here\n")
    assert run_conformance([settings]) == 0
    capsys.readouterr()

    with known.open("a") as file:
        file.write("CPU right int64 it was wrong once\n")
    assert run_conformance([settings]) == 1
    assert "line 2: CPU right int64: it passes; take the line out" in (
        capsys.readouterr().out
    )


def test_nothing_to_run_is_no_success(fake: Settings, known: Path) -> None:
    settings = replace(fake, ops=("no.such.op",), known_failures=known)
    assert run_conformance([settings]) == 1


def test_a_page_that_cannot_be_written_is_found_out_before_the_work(
    fake: Settings, known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = replace(fake, ops=("right",), known_failures=known)
    with pytest.raises(OSError, match="No such file"):
        run_conformance([settings], html_path=tmp_path / "no" / "out.html")
    assert capsys.readouterr().out == ""
