"""A sample of PyTorch's database of ops on lazy tensors: what fails is known to."""

import subprocess
import sys

import pytest

# Two that are known to fail, and kinds of ops: random, linear algebra, by other ops.
OPS = (
    "amax",
    "to_sparse",
    "uniform",
    "rand_like",
    "linalg.matrix_rank",
    "std",
    "gather",
)


@pytest.mark.rest
def test_a_sample_of_ops_is_right_or_known_to_fail() -> None:
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "xpurt", "conformance", "--device", "lazy"),
            *("--dtypes", "float32", "--gpu-types", "not", "--jobs", "1"),
            *("--samples-per-pair", "2", "--ops", *OPS),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "5 of 7 pairs are right" in ended.stdout
