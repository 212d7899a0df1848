"""`import torch` loads xpurt, unless that is switched off, and survives xpurt's faults.

Each test has a process of its own, and finds xpurt through a distribution that the
test writes. So it does not matter whether xpurt is installed.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import xpurt_autoload
from xpurt.config import _OFF

ROOT = Path(__file__).resolve().parents[1]
REPORT = """
import sys, torch
torch.xpu.is_available()
print("loaded" if "xpurt._C" in sys.modules else "left out")
"""


@pytest.fixture
def distribution(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH with the metadata of an installed xpurt, and no code."""
    metadata = tmp_path / "xpurt-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: xpurt\nVersion: 0\n"
    )
    (metadata / "entry_points.txt").write_text(
        "[torch.backends]\nxpurt = xpurt_autoload:load\n"
    )
    return tmp_path


def run(*path: Path, options: tuple[str, ...] = (), **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *options, "-c", REPORT],
        cwd=path[0],  # which Python puts before PYTHONPATH
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_import_torch_is_enough(distribution: Path) -> None:
    assert run(distribution, ROOT) == "loaded\n"


@pytest.mark.parametrize(
    "word",
    [
        "0",
        " Off ",
        *(pytest.param(word, marks=pytest.mark.slow) for word in ("false", "NO")),
    ],
)
def test_the_switch_keeps_xpurt_out(distribution: Path, word: str) -> None:
    assert run(distribution, ROOT, XPURT_AUTOLOAD=word) == "left out\n"


def test_pytorchs_own_switch_keeps_xpurt_out(distribution: Path) -> None:
    found = run(distribution, ROOT, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert found == "left out\n"


def test_an_explicit_import_does_not_ask_the_switch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import xpurt" + REPORT],
        env=os.environ | {"PYTHONPATH": str(ROOT), "XPURT_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "loaded\n", done.stderr


@pytest.mark.parametrize("options", [(), ("-W", "error::RuntimeWarning")])
def test_a_broken_xpurt_does_not_break_torch(
    distribution: Path, options: tuple[str, ...]
) -> None:
    """The package in front of the path fails; the entry point is the real one."""
    (distribution / "xpurt").mkdir()
    (distribution / "xpurt" / "__init__.py").write_text(
        "raise ImportError('no libsycl')"
    )
    found = run(distribution, ROOT, options=options)
    assert "left out\n" in found
    assert "no xpu device: no libsycl" in found


def test_the_words_for_off_are_those_of_the_configuration() -> None:
    assert set(xpurt_autoload.OFF) == set(_OFF)
