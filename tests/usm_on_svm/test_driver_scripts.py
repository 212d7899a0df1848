"""What tests/pocl.sh, tests/rusticl.sh and tests/neo.sh print where they can't run."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARIES = "root/usr/lib/x86_64-linux-gnu"


def run_script(name: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "tests" / name],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=60,
    )


def folder_of_tools(folder: Path, **tools: str) -> Path:
    """A folder for PATH with the shell's common tools, and scripts of these texts."""
    folder.mkdir()
    for name in ("bash", "env", "dirname", "realpath", "mkdir", "cp"):
        (folder / name).symlink_to(f"/usr/bin/{name}")
    for name, text in tools.items():
        script = folder / name
        script.write_text(f"#!/bin/bash\n{text}\n")
        script.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("script", "variable", "driver"),
    [
        ("pocl.sh", "POCL_DIR", "PoCL"),
        ("rusticl.sh", "RUSTICL_DIR", "rusticl"),
        ("neo.sh", "NEO_DIR", "NEO"),
    ],
)
def test_names_the_tool_that_is_missing(
    script: str, variable: str, driver: str, tmp_path: Path
) -> None:
    path = folder_of_tools(tmp_path / "bin")
    ended = run_script(script, PATH=str(path), **{variable: str(tmp_path / "driver")})
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"apt-get is missing: {driver} comes from Debian's")


def test_rusticl_needs_namespaces(tmp_path: Path) -> None:
    driver = tmp_path / "driver"
    for each in (LIBRARIES, "root/usr/lib/clc", "root/usr/lib/llvm-21/lib/clang"):
        (driver / each).mkdir(parents=True)
    (driver / LIBRARIES / "libRusticlOpenCL.so.1").touch()
    path = folder_of_tools(tmp_path / "bin", unshare="exit 1")
    ended = run_script("rusticl.sh", PATH=str(path), RUSTICL_DIR=str(driver))
    assert ended.returncode == 1
    assert "allow user namespaces" in ended.stderr
