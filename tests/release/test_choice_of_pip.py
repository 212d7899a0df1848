"""pip takes the wheel that fits the PyTorch, of several in a folder of empty wheels."""

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest


def add_wheel(folder: Path, name: str, version: str, *requirements: str) -> None:
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {each}\n" for each in requirements)
    inside = f"{name}-{version}.dist-info"
    with ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{inside}/METADATA", metadata)
        wheel.writestr(
            f"{inside}/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{inside}/RECORD", "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for minor in ("2.12", "2.13", "2.14"):
        add_wheel(tmp_path, "torch", f"{minor}.0+cpu")
    for minor in ("2.13", "2.14"):
        add_wheel(tmp_path, "xpurt", f"0.1.0+pt{minor}", f"torch=={minor}.*")
    return tmp_path


def pip(folder: Path, *requirements: str) -> subprocess.CompletedProcess[str]:
    options = ("--isolated", "--no-input", "--disable-pip-version-check")
    resolve = ("--dry-run", "--quiet", "--ignore-installed", "--report", "-")
    only = ("--no-index", "--find-links", str(folder))
    command = [sys.executable, "-m", "pip", "install", *options, *resolve, *only]
    return subprocess.run(
        [*command, *requirements],
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.mark.parametrize("minor", ["2.13", "2.14"])
def test_the_wheel_for_the_requested_pytorch_is_taken(folder: Path, minor: str) -> None:
    done = pip(folder, "xpurt", f"torch=={minor}.0")
    assert done.returncode == 0, done.stderr
    chosen = [each["metadata"] for each in json.loads(done.stdout)["install"]]
    assert {each["name"]: each["version"] for each in chosen} == {
        "torch": f"{minor}.0+cpu",
        "xpurt": f"0.1.0+pt{minor}",
    }


def test_a_pytorch_without_a_wheel_is_refused_with_the_versions_that_fit(
    folder: Path,
) -> None:
    done = pip(folder, "xpurt", "torch==2.12.0")
    assert done.returncode != 0
    assert "Cannot install torch==2.12.0" in done.stderr
    assert "xpurt==0.1.0+pt2.13 and xpurt==0.1.0+pt2.14" in done.stderr
