"""The sanitizers of `make sanitize` report defects, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_sanitizers.py")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["address", "thread"])
def test_a_defect_in_a_library_is_reported(name: str) -> None:
    command = [sys.executable, SCRIPT, name, "--self-check"]
    ended = subprocess.run(command, capture_output=True, text=True)
    if "install it" in ended.stdout:
        pytest.skip(ended.stdout.strip())
    assert ended.returncode == 0, ended.stdout + ended.stderr
