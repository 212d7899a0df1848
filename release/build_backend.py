"""The build backend: setuptools, with the PyTorch of the environment that calls it.

pip builds in an isolated environment with the packages of `build-system.requires`. A
PyTorch listed there is downloaded a second time, and may be another build than the one
that is installed. So the packages that the extension is compiled against are not listed
there. A hook requests those that the interpreter's own environment lacks, and the hooks
that compile find the others there.
"""

import sys
import sysconfig
from importlib.metadata import distributions
from typing import Any

from package_version import dependencies
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from setuptools import build_meta
from setuptools.build_meta import build_sdist, get_requires_for_build_sdist

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

Settings = dict[str, Any] | None

# Dependencies whose headers or libraries the extension is compiled against.
COMPILED_AGAINST = ("torch", "numpy", "dpctl", "onednn")
HEADERS = ("onednn-devel>=2026.1",)


def compile_requirements() -> list[str]:
    """Requirements of the compilation, whether installed or not."""
    wanted = [
        each for each in dependencies() if Requirement(each).name in COMPILED_AGAINST
    ]
    return [*wanted, *HEADERS]


def environment() -> list[str]:
    """The folders of packages of the interpreter; pip's isolation hides them."""
    return list(dict.fromkeys(map(sysconfig.get_path, ("platlib", "purelib"))))


def missing(requirements: list[str], folders: list[str]) -> list[str]:
    """The requirements that no package in the folders fulfils."""
    found = {
        canonicalize_name(each.name): each.version
        for each in distributions(path=folders)
    }

    def fulfils(requirement: Requirement) -> bool:
        version = found.get(canonicalize_name(requirement.name))
        return version is not None and requirement.specifier.contains(
            version, prereleases=True
        )

    return [each for each in requirements if not fulfils(Requirement(each))]


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    return missing(compile_requirements(), environment())


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    return get_requires_for_build_wheel(config_settings)


def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    _show_environment()
    arguments = wheel_directory, config_settings, metadata_directory
    return str(build_meta.build_wheel(*arguments))


def build_editable(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    _show_environment()
    arguments = wheel_directory, config_settings, metadata_directory
    return str(build_meta.build_editable(*arguments))


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Settings = None
) -> str:
    _show_environment()
    prepare = build_meta.prepare_metadata_for_build_wheel
    return str(prepare(metadata_directory, config_settings))


def prepare_metadata_for_build_editable(
    metadata_directory: str, config_settings: Settings = None
) -> str:
    _show_environment()
    prepare = build_meta.prepare_metadata_for_build_editable
    return str(prepare(metadata_directory, config_settings))


def _show_environment() -> None:
    """The packages of the isolated environment stay before the others."""
    sys.path += [each for each in environment() if each not in sys.path]


if __name__ == "__main__":  # for make, which builds without isolation
    print(*compile_requirements(), sep="\n")
