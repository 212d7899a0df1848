"""The programs in the README, each run as a user would run it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[1] / "README.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def name(program: str) -> str:
    found = re.search(r'set_xpu_mapping\("(\w+)"\)|def (test_\w+)', program)
    assert found is not None, "a program that sets no mapping, and is no test"
    return found[1] or found[2]


def test_the_readme_has_a_program_for_each_mapping() -> None:
    names = [name(program) for program in PROGRAMS]
    assert {"explicit", "CPU", "GPU", "AUTO"} <= set(names)


@pytest.mark.parametrize("program", PROGRAMS, ids=name)
def test_a_program_runs(program: str, tmp_path: Path) -> None:
    script = tmp_path / "test_program.py"
    script.write_text(program)
    command = [sys.executable, str(script)]
    if "def test_" in program:
        command = [sys.executable, "-m", "pytest", "-p", "pytest_xpurt", str(script)]
        command += [
            "--xpu-mapping",
            "CPU",
            "--xpu-required",
            "--rootdir",
            str(tmp_path),
        ]
    done = subprocess.run(
        command, env=os.environ, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_first_program_prints_its_loss_on_a_line_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAMS[0]], capture_output=True, text=True, timeout=120
    )
    loss, head, rule, *_ = done.stdout.splitlines()
    assert float(loss) > 0
    assert head.split()[:2] == ["op", "tier"]
    assert set(rule) == {"-", " "}
