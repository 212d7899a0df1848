"""What a wheel of xpurt has to contain, and what it must not; read from its list of files."""

import re
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path
from zipfile import ZipFile

from package_version import PYTORCH, ROOT

# Files of the tree that programs use, beside Python's. Names as in pyproject.toml's
# package-data; the tree is asked, so a file that is forgotten there is missing here.
DATA = {".pyi", ".typed", ".txt", ".json", ".cl", ".template", ".html", ".css", ".js"}
HEADERS = "xpurt/include/"  # for C++ extensions of users: xpurt/cpp_extension.py
EXTENSION = r"xpurt/_C\..*\.so"
COMPILED = (
    "xpurt/_built_for.py",
    "xpurt/virtual_gpu/_virtual_gpu.so",
    "xpurt/usm_on_svm/_usm_on_svm.so",
)
SOURCES = (".c", ".cpp", ".cc", ".h", ".hpp")
METADATA = ("Summary", "License-Expression", "Requires-Python", "Classifier")


def files_of_the_tree(root: Path = ROOT) -> set[str]:
    """The files of the package that a wheel has to contain, compiled ones apart."""
    found = {file.name for file in root.glob("*xpurt*.py")}
    for file in (root / "xpurt").rglob("*"):
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
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = next(
            archive.read(name).decode()
            for name in names
            if name.endswith(".dist-info/METADATA")
        )
    return [*_faults_of_files(names, wanted), *_faults_of_metadata(metadata)]


def _faults_of_files(names: set[str], wanted: set[str]) -> Iterator[str]:
    for name in sorted({*wanted, *COMPILED} - names):
        yield f"{name} is missing: list it in pyproject.toml, package-data"
    for name in sorted(names):
        if name.endswith(SOURCES) and not name.startswith(HEADERS):
            yield f"{name} is a source of the extension, which no program needs"
        if name.split("/")[0] in {"tests", "docs", "release", "examples", "build"}:
            yield f"{name} is outside of the package"
    extensions = [name for name in names if re.fullmatch(EXTENSION, name)]
    if len(extensions) != 1:
        yield f"one xpurt._C is wanted, found {sorted(extensions) or 'none'}"


def _faults_of_metadata(text: str) -> Iterator[str]:
    metadata = message_from_string(text)
    for field in METADATA:
        if not metadata[field]:
            yield f"the metadata have no {field}"
    if "# xpurt" not in str(metadata.get_payload()):
        yield "the metadata have no description: README.md is wanted"
    if f"+pt{PYTORCH}" not in (metadata["Version"] or ""):
        yield f"the version {metadata['Version']} does not end in +pt{PYTORCH}"
    requirements = metadata.get_all("Requires-Dist") or []
    if f"torch=={PYTORCH}.*" not in requirements:
        yield f"torch=={PYTORCH}.* is not required"
