"""The version, the requirements and the extensions; everything else is in
pyproject.toml."""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "release"))

import package_version  # noqa: E402

REFUSAL = package_version.refusal()


class Refused(build_ext):
    """Stands for the compiler; a source archive and metadata can be made without it."""

    def run(self) -> None:
        sys.exit(f"{REFUSAL} (into {sys.prefix})")


if REFUSAL is not None:
    command = Refused
    names = ("_C", "_layouts", "_lazy", "_prototype", "_first_use")
    extensions = [Extension(f"xpurt.{name}", []) for name in names]
else:
    import compile_extension

    os.environ.setdefault("MAX_JOBS", str(os.cpu_count() or 1))
    command = compile_extension.Build
    extensions = [
        compile_extension.extension(),
        *compile_extension.rooms(),
        compile_extension.first_use(),
    ]

# A source archive is for each PyTorch; what is compiled, for the one that is there.
series = None if "sdist" in sys.argv else package_version.series_to_build_for()

setup(
    ext_modules=extensions,
    cmdclass={"build_ext": command},
    install_requires=package_version.dependencies(series),
    **package_version.version_arguments(series),
)
