"""The version and the extension xpurt._C; everything else is in pyproject.toml."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "release"))

from package_version import PYTORCH, scm_options  # noqa: E402


class WithoutPyTorch(build_ext):
    """Stands for the compiler; a source archive and metadata can be made without it."""

    def run(self) -> None:
        sys.exit(
            f"xpurt._C is compiled against PyTorch, and {sys.executable} has none: "
            f'pip install "torch=={PYTORCH}.*"'
        )


if find_spec("torch") is None:
    command = WithoutPyTorch
    extension = Extension("xpurt._C", [])
else:
    import compile_extension

    os.environ.setdefault("MAX_JOBS", str(os.cpu_count() or 1))
    command = compile_extension.Build
    extension = compile_extension.extension()

setup(
    ext_modules=[extension],
    cmdclass={"build_ext": command},
    use_scm_version=scm_options(),
)
