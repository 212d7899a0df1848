"""`import torch` alone brings the device, and never fails because of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def torch_with(
    code: str, tmp_path: Path, **env: str
) -> subprocess.CompletedProcess[str]:
    """Runs `code` where xpurt's entry point is the only one of torch.backends."""
    found = tmp_path / "xpurt-0.dist-info"
    found.mkdir()
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: xpurt\nVersion: 0\n")
    (found / "entry_points.txt").write_text(
        "[torch.backends]\nxpurt = xpurt_autoload:load\n"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **env},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_import_torch_is_enough(tmp_path: Path) -> None:
    done = torch_with("import sys, torch; print('xpurt' in sys.modules)", tmp_path)
    assert (done.stdout.strip(), done.stderr) == ("True", "")


@pytest.mark.parametrize(
    "switch", [{"XPURT_AUTOLOAD": "0"}, {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}]
)
def test_it_can_be_switched_off(tmp_path: Path, switch: dict[str, str]) -> None:
    done = torch_with(
        "import sys, torch; print('xpurt' in sys.modules)", tmp_path, **switch
    )
    assert (done.stdout.strip(), done.stderr) == ("False", "")


def test_import_xpurt_first_is_the_same(tmp_path: Path) -> None:
    done = torch_with("import xpurt, torch; print(xpurt.__version__)", tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_failing_xpurt_leaves_torch_alone(tmp_path: Path) -> None:
    broken = tmp_path / "xpurt"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise ImportError('it is broken')\n")
    done = torch_with(
        "import torch, xpurt_autoload; print(xpurt_autoload.failure)", tmp_path
    )
    assert (done.stdout.strip(), done.stderr) == ("ImportError: it is broken", "")
