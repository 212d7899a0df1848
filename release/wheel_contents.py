"""What the wheels of xpurt and xpurt-tools have to contain, and what they must not; read
from their lists of files."""

import re
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path
from zipfile import ZipFile

from package_version import ROOT, SERIES, requirement_of_tools

# Files of the tree that programs use, beside Python's. Names as in pyproject.toml's
# package-data; the tree is asked, so a file that is forgotten there is missing here.
DATA = {".pyi", ".typed", ".txt", ".json", ".cl", ".template", ".html", ".css", ".js"}
HEADERS = "xpurt/include/"  # for C++ extensions of users: xpurt/cpp_extension.py
LIBRARY = r"xpurt/{}\..*\.so"
LIBRARIES = ("_C", "_first_use", "_layouts", "_lazy", "_prototype")
EXTENSION = LIBRARY.format("_C")
BUILT_FOR = "xpurt/_built_for.py"
COMPILED = (
    BUILT_FOR,
    "xpurt/virtual_gpu/_virtual_gpu.so",
    "xpurt/usm_on_svm/_usm_on_svm.so",
    "xpurt/launch_recorder/_launch_recorder.so",
    "xpurt/accelerator_layer/_accelerator_layer.so",
)
SOURCES = (".c", ".cpp", ".cc", ".h", ".hpp")
ENDS = [f"+pt{series}" for series in SERIES]
OTHER_FOLDERS = {
    "tests",
    "docs",
    "release",
    "examples",
    "build",
    "tools",
    "xpurt_tools",
}
METADATA = ("Summary", "License-Expression", "Requires-Python", "Classifier")


def files_of_the_tree(root: Path = ROOT) -> set[str]:
    """The files of the package that a wheel has to contain, compiled ones apart."""
    found = {file.name for file in root.glob("*xpurt*.py")}
    return found | _files_of(root, "xpurt")


def files_of_the_tools(root: Path = ROOT / "tools") -> set[str]:
    """The files that a wheel of xpurt-tools has to contain."""
    return _files_of(root, "xpurt_tools")


def _files_of(root: Path, package: str) -> set[str]:
    found = set()
    for file in (root / package).rglob("*"):
        name = file.relative_to(root).as_posix()
        if "__pycache__" in name or "/csrc/" in name or name in COMPILED:
            continue
        if file.suffix in DATA | {".py"} or name.startswith(HEADERS):
            found.add(name)
    return {name for name in found if (root / name).is_file()}


def faults(wheel: Path, wanted: set[str]) -> list[str]:
    """The reasons not to publish the wheel, one sentence each.

    wanted: names of files, with slashes, as `files_of_the_tree` returns them.
    """
    names, metadata = _names_and_metadata(wheel)
    with ZipFile(wheel) as archive:
        built_for = archive.read(BUILT_FOR).decode() if BUILT_FOR in names else ""
    return [*_faults_of_files(names, wanted), *_faults_of_metadata(metadata, built_for)]


def faults_of_tools(wheel: Path, wanted: set[str]) -> list[str]:
    """The same for a wheel of xpurt-tools, whose files `files_of_the_tools` returns."""
    names, text = _names_and_metadata(wheel)
    found = [
        f"{name} is missing: list it in tools/pyproject.toml, package-data"
        for name in sorted(wanted - names)
    ]
    found += [
        f"{name} is outside of the package"
        for name in sorted(names)
        if not name.startswith(("xpurt_tools/", "xpurt_tools-"))
    ]
    metadata = message_from_string(text)
    requirement = requirement_of_tools(metadata["Version"])
    if metadata.get_all("Requires-Dist") != [requirement]:
        found.append(f"{requirement} is not what it requires")
    return found


def _names_and_metadata(wheel: Path) -> tuple[set[str], str]:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (n for n in names if n.endswith(".dist-info/METADATA"))
        return names, archive.read(metadata).decode()


def _faults_of_files(names: set[str], wanted: set[str]) -> Iterator[str]:
    for name in sorted({*wanted, *COMPILED} - names):
        yield f"{name} is missing: list it in pyproject.toml, package-data"
    for name in sorted(names):
        if name.endswith(SOURCES) and not name.startswith(HEADERS):
            yield f"{name} is a source of the extension, which no program needs"
        if name.split("/")[0] in OTHER_FOLDERS:
            yield f"{name} is outside of the package"
    for name in LIBRARIES:
        found = [each for each in names if re.fullmatch(LIBRARY.format(name), each)]
        if len(found) != 1:
            yield f"one xpurt.{name} is wanted, found {sorted(found) or 'none'}"


def series_of(version: str) -> str | None:
    """The series of PyTorch that the version of a wheel names: "2.13" for
    "0.1.0+pt2.13" and "0.1.0+pt2.13.g1a2b3c4"; None if it names no supported one."""
    local = f"+{version.partition('+')[2]}."
    return next((s for s in SERIES if local.startswith(f"+pt{s}.")), None)


def _faults_of_metadata(text: str, built_for: str) -> Iterator[str]:
    metadata = message_from_string(text)
    for field in METADATA:
        if not metadata[field]:
            yield f"the metadata have no {field}"
    if "# xpurt" not in str(metadata.get_payload()):
        yield "the metadata have no description: README.md is wanted"
    series = series_of(metadata["Version"] or "")
    if series is None:
        yield f"the version {metadata['Version']} names none of {', '.join(ENDS)}"
        return
    if f"torch=={series}.*" not in (metadata.get_all("Requires-Dist") or []):
        yield f"torch=={series}.* is not required"
    if f'TORCH = "{series}.' not in built_for:
        yield f"xpurt._C was not compiled for PyTorch {series}: {built_for!r}"
