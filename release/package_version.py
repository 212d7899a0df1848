"""The version and the requirements of a package: of the source tree, and of a wheel.

The source tree serves several series of PyTorch (xpurt/torch_versions.py). A wheel is
compiled for the PyTorch that is installed: it requires that series alone, and its version
ends in `+pt2.15`. A source archive has neither, and so has xpurt-tools, which is no
compiled code.
"""

import runpy
import tomllib
from email import message_from_string
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

# By path: importing the package would need the extension.
_versions = runpy.run_path(str(ROOT / "xpurt" / "torch_versions.py"))
SERIES: tuple[str, ...] = _versions["SERIES"]
REQUIREMENT: str = _versions["REQUIREMENT"]


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def project() -> dict[str, Any]:
    """The table `project` of pyproject.toml."""
    return dict(_pyproject()["project"])


def dependencies(series: str | None = None) -> list[str]:
    """The requirements of the source tree, or of a wheel for a series of PyTorch."""
    wanted = list(_pyproject()["tool"]["xpurt"]["dependencies"])
    if series is not None:
        wanted[wanted.index(REQUIREMENT)] = f"torch=={series}.*"
    return wanted


def installed_pytorch() -> str | None:
    """The version of the PyTorch that would be imported; None if there is none."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return None


def refusal() -> str | None:
    """Why nothing can be compiled with the PyTorch that is installed; None if it can."""
    found = installed_pytorch()
    if found is None:
        return f'xpurt._C is compiled against PyTorch: pip install "{REQUIREMENT}"'
    reason: str | None = _versions["refusal"](found)
    return reason


def series_to_build_for() -> str | None:
    """The series of the PyTorch that is installed; None if there is none that fits."""
    if refusal() is not None:
        return None
    series: str = _versions["series_of"](installed_pytorch())
    return series


def local_part(series: str | None, version: Any) -> str:
    """What follows the public version: the PyTorch, and the commit if it has no tag.

    version: setuptools-scm's ScmVersion; its fields `exact`, `node` and `dirty` are read.
    """
    parts = []
    if not version.exact:
        parts.append((version.node or "unknown")[:8])
    if version.dirty:
        parts.append("changed")
    return _local(series, parts)


def _local(series: str | None, parts: list[str]) -> str:
    parts = [*([f"pt{series}"] if series else []), *parts]
    return "+" + ".".join(parts) if parts else ""


def with_pytorch(version: str, series: str | None) -> str:
    """The version of a wheel, from that of the source archive which it is built from."""
    public, _, local = version.partition("+")
    return public + _local(series, local.split(".") if local else [])


def version_arguments(series: str | None) -> dict[str, Any]:
    """The arguments of setuptools.setup() that give the version.

    A tag v1.2.0 is version 1.2.0+pt2.13. The third commit after it is
    1.2.1.dev3+pt2.13.g1a2b3c4. A source archive has its version in PKG-INFO. A folder
    without either has a version below every release.
    """
    of_archive = ROOT / "PKG-INFO"
    if of_archive.exists():
        metadata = message_from_string(of_archive.read_text())
        return {"version": with_pytorch(metadata["Version"], series)}
    return {"use_scm_version": scm_options(series)}


def version_of_tree() -> str:
    """The version of a source archive of the tree, and of xpurt-tools."""
    arguments = version_arguments(None)
    if "version" in arguments:
        return str(arguments["version"])
    from setuptools_scm import get_version  # it is there where something is built

    return get_version(**arguments["use_scm_version"])


def version_of_tools(version: str, series: str) -> str:
    """The version of the xpurt-tools that belongs to a wheel of xpurt for a series."""
    public, _, local = version.partition("+")
    rest = local.removeprefix(f"pt{series}").removeprefix(".")
    return public + _local(None, [rest] if rest else [])


def requirement_of_tools(version: str) -> str:
    """What xpurt-tools of a version requires: that xpurt, for any PyTorch."""
    return f"xpurt=={version.partition('+')[0]}"


def scm_options(series: str | None) -> dict[str, Any]:
    """The options of setuptools-scm."""
    return {
        "root": str(ROOT),
        "local_scheme": partial(local_part, series),
        "fallback_version": with_pytorch("0.0.dev0", series),
    }
