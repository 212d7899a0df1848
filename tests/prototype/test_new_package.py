"""`python -m xpurt prototype new`: the package that it writes passes its own tests."""

import subprocess
import sys
from pathlib import Path

import pytest

OTHERS = ["ipu", "mtia", "maia"]


def new(name: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "xpurt", "prototype", "new", name]
    return subprocess.run(
        [*command, "--folder", str(folder)], capture_output=True, text=True
    )


NAMES = ["mydevice", *(pytest.param(each, marks=pytest.mark.slow) for each in OTHERS)]


@pytest.mark.rest
@pytest.mark.parametrize("name", NAMES)
def test_a_new_package_passes_its_own_tests(name: str, tmp_path: Path) -> None:
    made = new(name, tmp_path)
    assert made.returncode == 0, made.stderr
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "7 passed" in tests.stdout, tests.stdout + tests.stderr


@pytest.mark.rest
def test_files_are_not_written_over(tmp_path: Path) -> None:
    assert new("ipu", tmp_path).returncode == 0
    (tmp_path / "README.md").write_text("mine")
    again = new("ipu", tmp_path)
    assert again.returncode == 1
    assert "is there already" in again.stderr
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_name_that_is_taken() -> None:
    assert "can't be prototyped" in new("cuda", Path()).stderr
