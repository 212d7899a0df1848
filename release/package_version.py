"""The version of a package: the tags of git, and the PyTorch that it is built for."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def project() -> dict[str, Any]:
    """The table `project` of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return dict(table["project"])


def pytorch_of(dependencies: list[str]) -> str:
    """The minor version of PyTorch that the dependencies pin: "2.13" for "torch==2.13.*".

    Raises ValueError if they pin none, or several.
    """
    pins = [each for each in dependencies if each.startswith("torch==")]
    if len(pins) != 1 or not pins[0].endswith(".*"):
        raise ValueError(
            f'one dependency has to be like "torch==2.13.*"; found {pins or "none"}'
        )
    return pins[0].removeprefix("torch==").removesuffix(".*")


PYTORCH = pytorch_of(project()["dependencies"])


def local_part(version: Any) -> str:
    """What follows the public version: the PyTorch, and the commit if it has no tag.

    version: setuptools-scm's ScmVersion; its fields `exact`, `node` and `dirty` are read.
    """
    parts = [f"pt{PYTORCH}"]
    if not version.exact:
        parts.append((version.node or "unknown")[:8])
    if version.dirty:
        parts.append("changed")
    return "+" + ".".join(parts)


def scm_options() -> dict[str, Any]:
    """The options of setuptools-scm.

    A tag v1.2.0 is version 1.2.0+pt2.13. The third commit after it is
    1.2.1.dev3+pt2.13.g1a2b3c4. A source archive has its version in PKG-INFO. A folder
    without either has a version below every release.
    """
    return {
        "root": str(ROOT),
        "local_scheme": local_part,
        "fallback_version": f"0.0.dev0+pt{PYTORCH}",
    }
