"""Kernels in which lanes work together, on a device that has no sub-groups: there a
work-item is alone, and each lane that a kernel asks for is lane 0."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.database_names import TESTED_APART
from xpurt.kernels import ROWS
from xpurt.kernels.kinds.custom_kernel import CustomKernel

TESTS = Path(__file__).parents[1]
ROWS_WITH_LANES = {
    row.aten
    for row in ROWS
    if isinstance(row, CustomKernel) and any(step.lanes for step in row.steps)
}
SAMPLES = f"{TESTS}/kernels/test_by_database.py::test_samples"
# Those of the fused ops have tests of their own.
FUSED = f"{TESTS}/fused_ops/test_fused_values.py::test_values_and_gradients"


@pytest.mark.rest
def test_rows_with_lanes() -> None:
    rows = sorted(ROWS_WITH_LANES - TESTED_APART)
    assert "multi_margin_loss" in rows
    passes("", *(f"{SAMPLES}[GPU-{aten}-float]" for aten in rows))


@pytest.mark.rest
def test_fused_ops() -> None:
    passes("not slow", FUSED)


def passes(marks: str, *tests: str) -> None:
    options = ("-q", "-p", "no:cacheprovider", "--xpu-mapping", "GPU", "-m", marks)
    settings = {
        "XPURT_VIRTUAL_GPU": "strict",
        "XPURT_VIRTUAL_GPU_LIMITS": "sub_groups=0",
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
