"""The workflows and the Dockerfile are read; what they run exists in the tree."""

import re
from pathlib import Path
from typing import Any

import pytest
from release_tools import ROOT, package_version

yaml = pytest.importorskip("yaml", reason="it comes with mkdocs")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]  # as text: 3.10 is the number 3.1


def jobs(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text())["jobs"])


def test_there_are_four() -> None:
    assert [path.stem for path in WORKFLOWS] == ["docs", "matrix", "tests", "wheels"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_it_runs_exists(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    steps = [step for job in jobs(path).values() for step in job["steps"]]
    assert steps
    for step in steps:
        assert len({"uses", "run"} & set(step)) == 1, step
        text = step.get("run", "")
        for target in re.findall(r"\bmake ([\w-]+)", text):
            assert re.search(rf"^{target}:", makefile, re.M), target
        for file in re.findall(r"(?:release|\.ci)/[\w.]+", text):
            assert (ROOT / file).is_file(), file


@pytest.mark.parametrize("name", ["tests", "wheels"])
def test_every_python_is_there(name: str) -> None:
    (job,) = (
        job
        for job in jobs(ROOT / ".github" / "workflows" / f"{name}.yml").values()
        if "strategy" in job
    )
    assert job["strategy"]["matrix"]["python"] == PYTHONS
    classifiers = (ROOT / "pyproject.toml").read_text()
    assert re.findall(r"Python :: (3\.\d+)\"", classifiers) == PYTHONS


@pytest.mark.parametrize(("name", "job"), [("wheels", "wheel"), ("matrix", "pytorch")])
def test_every_series_of_pytorch_is_there(name: str, job: str) -> None:
    described = jobs(ROOT / ".github" / "workflows" / f"{name}.yml")[job]
    assert described["strategy"]["matrix"]["pytorch"] == list(package_version.SERIES)


def test_the_image_refuses_a_wheel_for_a_newer_linux() -> None:
    text = (ROOT / "release" / "Dockerfile").read_text()
    assert "manylinux2_28" in text
    assert "ls dist/xpurt-*-manylinux_2_28_x86_64.whl" in text
    assert re.findall(r"make ([\w-]+)", text) == ["wheels"]
