"""What is refused in a wheel, by wheels that are made of a list of files."""

import re
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from release_tools import ROOT, wheel_contents

EXTENSION = "xpurt/_C.cpython-311-x86_64-linux-gnu.so"
LIBRARIES = [
    EXTENSION.replace("_C", name)
    for name in ("_C", "_first_use", "_layouts", "_lazy", "_prototype")
]
METADATA = """\
Metadata-Version: 2.4
Name: xpurt
Version: 0.1.0+pt2.13
Summary: a device
License-Expression: BSD-3-Clause
Requires-Python: >=3.11
Classifier: Typing :: Typed
Requires-Dist: torch==2.13.*

# xpurt
"""
WANTED = {"xpurt/__init__.py", "xpurt/include/xpurt/queue.h"}
COMPLETE = WANTED | {*LIBRARIES, *wheel_contents.COMPILED}


def faults(
    folder: Path, names: set[str], metadata: str = METADATA, built_for: str = "2.13.0"
) -> list[str]:
    wheel = folder / "xpurt.whl"
    with ZipFile(wheel, "w") as archive:
        for name in names:
            text = f'TORCH = "{built_for}"\n' if name.endswith("_built_for.py") else ""
            archive.writestr(name, text)
        archive.writestr("xpurt-0.1.0+pt2.13.dist-info/METADATA", metadata)
    return wheel_contents.faults(wheel, WANTED)


def test_a_complete_wheel_has_no_fault(tmp_path: Path) -> None:
    assert faults(tmp_path, COMPLETE) == []


@pytest.mark.parametrize("name", sorted(WANTED | {*wheel_contents.COMPILED}))
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    fault, *_ = faults(tmp_path, COMPLETE - {name})
    assert fault.startswith(f"{name} is missing: list it in pyproject.toml")


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("xpurt/csrc/op/op.cpp", "a source of the extension"),
        ("xpurt/virtual_gpu/layer/layer.h", "a source of the extension"),
        ("tests/conftest.py", "outside of the package"),
        ("release/build_backend.py", "outside of the package"),
        ("xpurt_tools/__init__.py", "outside of the package"),
    ],
)
def test_a_file_that_no_program_needs_is_refused(
    tmp_path: Path, name: str, fault: str
) -> None:
    (line,) = faults(tmp_path, COMPLETE | {name})
    assert line.startswith(name)
    assert fault in line


def test_one_extension_is_wanted(tmp_path: Path) -> None:
    """Another Python's, built in the tree before, would come along."""
    other = EXTENSION.replace("311", "312")
    assert "found ['xpurt/_C.cp" in faults(tmp_path, COMPLETE | {other})[0]
    for each in LIBRARIES:
        assert "found none" in faults(tmp_path, COMPLETE - {each})[0]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("Summary: a device\n", "", "no Summary"),
        ("Classifier: Typing :: Typed\n", "", "no Classifier"),
        ("# xpurt", "", "no description"),
        ("0.1.0+pt2.13", "0.1.0", "names none of +pt2.13, +pt2.14, +pt2.15"),
        ("0.1.0+pt2.13", "0.1.0+pt2.12", "names none of +pt2.13, +pt2.14, +pt2.15"),
        ("torch==2.13.*", "torch", "torch==2.13.* is not required"),
    ],
)
def test_metadata_that_lack_something_are_refused(
    tmp_path: Path, old: str, new: str, fault: str
) -> None:
    (line,) = faults(tmp_path, COMPLETE, METADATA.replace(old, new))
    assert fault in line


def test_an_extension_for_another_pytorch_is_refused(tmp_path: Path) -> None:
    """One that was built in the tree before, for instance."""
    (line,) = faults(tmp_path, COMPLETE, built_for="2.14.1")
    assert line.startswith(
        "xpurt._C was not compiled for PyTorch 2.13: 'TORCH = \"2.14.1"
    )


@pytest.mark.parametrize(
    ("version", "series"),
    [
        ("0.1.0+pt2.13", "2.13"),
        ("0.1.1.dev3+pt2.15.g1a2b3c4.changed", "2.15"),
        ("0.1.0+pt2.130", None),
        ("0.1.0", None),
    ],
)
def test_the_series_in_a_version(version: str, series: str | None) -> None:
    assert wheel_contents.series_of(version) == series


def forgotten(root: Path, wanted: set[str]) -> set[str]:
    """What pyproject.toml in `root` does not list."""
    tool = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert tool["include-package-data"] is False
    listed = {
        file.relative_to(root).as_posix()
        for package, patterns in tool["package-data"].items()
        for pattern in patterns
        for file in (root / package).glob(pattern)
    }
    modules = {f"{name}.py" for name in tool.get("py-modules", ())}
    return {
        name
        for name in wanted - listed - modules
        # A folder with an __init__.py is a package, and its modules are found.
        if not (
            name.endswith(".py") and (root / name).with_name("__init__.py").exists()
        )
    }


def test_every_file_that_the_tree_has_for_programs_is_listed() -> None:
    """By package-data, so that no wheel has to be built to find a forgotten one."""
    wanted = wheel_contents.files_of_the_tree()
    assert "xpurt/include/xpurt/queue.h" in wanted
    assert forgotten(ROOT, wanted) == set()


def test_every_file_of_the_tools_is_listed() -> None:
    wanted = wheel_contents.files_of_the_tools()
    assert "xpurt_tools/conformance/known_failures.txt" in wanted
    assert "xpurt_tools/vendor_package/template/README.md.template" in wanted
    assert forgotten(ROOT / "tools", wanted) == set()


TOOLS = {"xpurt_tools/__init__.py", "xpurt_tools/conformance/known_failures.txt"}
OF_TOOLS = "Name: xpurt-tools\nVersion: 0.1.0\nRequires-Dist: xpurt==0.1.0\n"


@pytest.mark.parametrize(
    ("names", "metadata", "fault"),
    [
        (TOOLS, OF_TOOLS, None),
        (
            TOOLS - {"xpurt_tools/conformance/known_failures.txt"},
            OF_TOOLS,
            "known_failures.txt is missing: list it in tools/pyproject.toml",
        ),
        (TOOLS | {"setup.py"}, OF_TOOLS, "setup.py is outside of the package"),
        (TOOLS, OF_TOOLS.replace("==", ">="), "xpurt==0.1.0 is not what it requires"),
    ],
)
def test_what_is_refused_in_a_wheel_of_the_tools(
    tmp_path: Path, names: set[str], metadata: str, fault: str | None
) -> None:
    wheel = tmp_path / "xpurt_tools.whl"
    with ZipFile(wheel, "w") as archive:
        for name in names:
            archive.writestr(name, "")
        archive.writestr("xpurt_tools-0.1.0.dist-info/METADATA", metadata)
    found = wheel_contents.faults_of_tools(wheel, TOOLS)
    assert [fault in each for each in found] == ([True] if fault else [])


def test_sources_of_the_extension_are_listed_nowhere() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert not re.search(r'"[^"]*\.(cpp|c|so)"', text)
