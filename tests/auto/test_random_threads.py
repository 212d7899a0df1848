"""Random programs of threads under AUTO: see threads_program.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import xpurt

PROGRAM = Path(__file__).with_name("threads_program.py")
ALIASES = ("disjoint", "inner")


def run(seed: int, seconds: float, rounds: int, *switches: str) -> None:
    command = [sys.executable, PROGRAM, str(seed), str(seconds), str(rounds), *switches]
    environment = {**os.environ, "XPURT_MAPPING": "AUTO", "XPURT_LEARN": str(seed % 2)}
    ended = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds * rounds + 300,
    )
    assert ended.returncode == 0, f"exit {ended.returncode}\n{ended.stderr[-8000:]}"
    assert "is taken under the lock" not in ended.stderr
    assert len(ended.stdout.splitlines()) == rounds


@pytest.fixture(autouse=True)
def two_devices() -> None:
    if not any(device.kind == "gpu" for device in xpurt.physical_devices()):
        pytest.skip("AUTO needs two devices: the virtual GPU is switched off")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("seed", "switches"), [(0, ()), (101, ALIASES)])
def test_short_rounds(seed: int, switches: tuple[str, ...]) -> None:
    run(seed, 1, 4, *switches)


@pytest.mark.parametrize("seed", [300, pytest.param(301, marks=pytest.mark.slow)])
def test_a_gpu_that_fails(seed: int) -> None:
    run(seed, 2, 1, "faults")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1011))
def test_ten_minutes(seed: int) -> None:
    run(seed, 10, 6, *ALIASES)
