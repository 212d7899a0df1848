"""Runs the tests of fused_convolutions_cases.py in processes of their own: frozen code
keeps its constants, and the mapping can't change while xpu tensors are alive."""

import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("fused_convolutions_cases.py")


@pytest.mark.parametrize(
    "mapping", ["CPU", "GPU", pytest.param("AUTO", marks=pytest.mark.slow)]
)
def test_fused_convolutions(mapping: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", CASES, "--xpu-mapping", mapping],
        capture_output=True,
        text=True,
        cwd=CASES.parents[2],
    )
    assert ended.returncode == 0, ended.stdout
    assert " passed" in ended.stdout
