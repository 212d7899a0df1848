"""The version and the requirement, which are xpurt's; everything else is in
pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "release"))

import package_version  # noqa: E402

version = package_version.version_of_tree()

setup(
    version=version,
    install_requires=[package_version.requirement_of_tools(version)],
    options={"build": {"build_base": str(ROOT / "build" / "tools")}},
)
