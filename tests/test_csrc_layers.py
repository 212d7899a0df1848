"""The folders of xpurt/csrc, and the includes between them.

Each folder has a README.md with a line `May include: host, device.`: the folders below
it. A file includes its own folder and these, by `#include "folder/file.h"`.
"""

import re
from pathlib import Path

import pytest

CSRC = Path(__file__).resolve().parents[1] / "xpurt" / "csrc"
FILES = sorted(p for p in CSRC.rglob("*") if p.suffix in {".h", ".cpp"})
FOLDERS = sorted(p.name for p in CSRC.iterdir() if p.is_dir())


def may_include(folder: str) -> set[str]:
    """The folders that the README of `folder` names."""
    text = (CSRC / folder / "README.md").read_text()
    (line,) = re.findall(r"^May include: (.*)\.$", text, re.MULTILINE)
    return set() if line == "nothing of ours" else set(line.split(", "))


def includes_of(source: str) -> set[str]:
    """The includes of `source` in this package: the names between quotes."""
    return {
        name
        for name in re.findall(r'^\s*#include "([^"]+)"', source, re.MULTILINE)
        if name.endswith(".h")
    }


def faults(folder: str, source: str) -> list[str]:
    """The rules that the includes of a file in `folder` break, one sentence each."""
    allowed = may_include(folder) | {folder}
    return [
        f'{name}: write the folder, as in "stream/stream.h"'
        if "/" not in name
        else f"{folder}/ may not include {name}"
        for name in sorted(includes_of(source))
        if name.split("/")[0] not in allowed
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(CSRC)))
def test_a_file_includes_only_folders_below_its_own(path: Path) -> None:
    parts = path.relative_to(CSRC).parts
    if len(parts) == 1:
        assert path.name == "precompiled.h"
        assert not includes_of(path.read_text())
    else:
        assert faults(parts[0], path.read_text()) == []


PURE = CSRC / "schedule" / "planning"


@pytest.mark.parametrize(
    "path", [p for p in FILES if PURE in p.parents], ids=lambda p: p.name
)
def test_planning_uses_no_device(path: Path) -> None:
    """The simulator and the run time share it: nothing of SYCL, of ATen, of a clock, or
    of the other folders."""
    source = path.read_text()
    own = includes_of(source) - {"host/api.h"}
    assert {name.rpartition("/")[0] for name in own} <= {"schedule/planning"}
    others = set(re.findall(r"^#include <([^>]+)>", source, re.MULTILINE))
    refused = ("sycl", "ATen", "torch", "chrono", "thread", "mutex", "atomic")
    assert [name for name in others if name.startswith(refused)] == []


def test_an_included_file_exists() -> None:
    """By its own name: a file that is moved takes its name with it."""
    names = {str(p.relative_to(CSRC)) for p in FILES}
    assert set().union(*(includes_of(p.read_text()) for p in FILES)) <= names


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_may_include_what_it_does_include(folder: str) -> None:
    """A README that allows more includes than are used is out of date."""
    used = {
        name.split("/")[0]
        for path in (CSRC / folder).rglob("*")
        if path.suffix in {".h", ".cpp"}
        for name in includes_of(path.read_text())
    }
    assert may_include(folder) == used - {folder}


@pytest.mark.parametrize(
    "folder",
    [p for p in CSRC.rglob("*") if p.is_dir()],
    ids=lambda p: str(p.relative_to(CSRC)),
)
def test_a_folder_says_what_it_holds(folder: Path) -> None:
    assert (folder / "README.md").exists()


def test_pybind_is_in_one_folder() -> None:
    users = {p.relative_to(CSRC).parts[0] for p in FILES if "pybind11" in p.read_text()}
    assert users == {"python"}


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (
            '#include "dispatch/dispatch.h"',
            "stream/ may not include dispatch/dispatch.h",
        ),
        ('#include "event.h"', "write the folder"),
        ('  #include "onednn/plan.h"', "may not include onednn/plan.h"),
    ],
)
def test_a_fault_is_seen(source: str, fault: str) -> None:
    (line,) = faults("stream", source)
    assert fault in line
