"""The checklist of a release, as a program: `make release-check`.

    python release/check_release.py WHEEL [--torch REQUIREMENT] [--beside FOLDER]

It makes an empty environment in a temporary folder, installs PyTorch, the wheel and the
wheel of xpurt-tools beside it, and uses them there: without a compiler, without this
tree in the path of imports. Each step is printed with its time. The exit status is 1 if
a step fails; its output is printed.

--beside names a folder site-packages whose PyTorch, SYCL and other packages are used
instead of downloads. That checks the wheel, and not its requirements.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from package_version import ROOT, project, version_of_tools
from wheel_contents import series_of

# A minute or two; they need no compiler, and of the extra `test` only these packages.
TEST_PACKAGES = ("pytest>", "hypothesis>")
TESTS = (
    "tests/test_config.py",
    "tests/mapping",
    "tests/streams",
    "tests/bad_input",
)
WHERE = """
import pathlib, sys, xpurt
found = pathlib.Path(xpurt.__file__).resolve()
assert pathlib.Path(sys.prefix).resolve() in found.parents, found
assert xpurt.__version__ == {version!r}, xpurt.__version__
"""
ADDITION = """
import torch
x = torch.ones(3, device="xpu")
assert (x + x).tolist() == [2, 2, 2]
"""


class Step(NamedTuple):
    name: str
    command: list[str]


def version_of(wheel: Path) -> str:
    """The version in the name of the wheel."""
    return wheel.name.split("-")[1]


def tools_of(wheel: Path, series: str) -> Path:
    """The wheel of xpurt-tools that belongs to a wheel of xpurt, in its folder."""
    version = version_of_tools(version_of(wheel), series)
    return wheel.with_name(f"xpurt_tools-{version}-py3-none-any.whl")


def installation(
    python: str, wheels: Sequence[Path], torch: str, beside: Path | None
) -> Step:
    """wheels: of xpurt, and of xpurt-tools."""
    wheel, tools = map(str, wheels)
    pip = [python, "-m", "pip", "install", "-q"]
    if beside is None:
        extra = project()["optional-dependencies"]["test"]
        tests = [each for each in extra if each.startswith(TEST_PACKAGES)]
        command = [*pip, torch, f"{wheel}[demo]", tools, *tests]
        return Step("install PyTorch and the wheels", command)
    command = [*pip, "--no-deps", wheel, tools]
    return Step(f"install the wheels beside {beside}", command)


def uses(python: str, version: str) -> list[Step]:
    """What a user does first, and tests."""
    run = [python, "-m"]
    return [
        Step("the installed package", [python, "-c", WHERE.format(version=version)]),
        Step("import torch alone", [python, "-c", ADDITION]),
        Step("doctor", [*run, "xpurt", "doctor"]),
        Step("demo", [*run, "xpurt", "demo", "--epochs", "2"]),
        Step("tools", [*run, "xpurt", "bench", "--quick", "--suite", "reduce"]),
        Step("tests", [*run, "pytest", "-q", "-x", "--xpu-mapping", "CPU", *TESTS]),
    ]


def environment(folder: Path, programs: Path) -> dict[str, str]:
    """No variable of Python's or xpurt's, and no program but the environment's own."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "XPURT_", "TORCH_", "LD_", "CC", "CXX"))
    }
    caches = {"XPURT_CACHE_DIR": str(folder / "kernels")}
    return {**kept, **caches, "PATH": str(programs)}


def copy_tests(folder: Path) -> None:
    """The tests without the package, so that they import the installed one."""
    shutil.copytree(
        ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", folder)


def passes(step: Step, folder: Path, variables: dict[str, str]) -> bool:
    begun = time.monotonic()
    ended = subprocess.run(
        step.command, cwd=folder, env=variables, capture_output=True, text=True
    )
    seconds = time.monotonic() - begun
    word = "FAIL" if ended.returncode else "ok"
    print(f"{word:5} {step.name} ({seconds:.0f} s)", flush=True)
    if ended.returncode:
        print(ended.stdout[-5000:], ended.stderr[-5000:], sep="\n")
    return ended.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--torch", help="default: the series that the wheel names")
    parser.add_argument("--beside", type=Path)
    options = parser.parse_args()
    wheel = options.wheel.resolve()
    if not wheel.is_file():
        parser.error(f"there is no file {wheel}: `make wheels` builds one")
    series = series_of(version_of(wheel))
    if series is None:
        parser.error(f"{wheel.name} names no supported PyTorch, as +pt2.13 does")
    tools = tools_of(wheel, series)
    if not tools.is_file():
        parser.error(f"there is no file {tools}: `make wheels` builds it, too")
    torch = options.torch or f"torch=={series}.*"
    with tempfile.TemporaryDirectory(prefix="xpurt-release-") as name:
        folder = Path(name)
        made = folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", made], check=True)
        python = str(made / "bin" / "python")
        if options.beside is not None:
            (packages,) = made.glob("lib/python*/site-packages")
            (packages / "beside.pth").write_text(f"{options.beside.resolve()}\n")
        copy_tests(folder)
        variables = environment(folder, made / "bin")
        first = installation(python, (wheel, tools), torch, options.beside)
        if not passes(first, folder, variables):
            sys.exit(1)
        results = [
            passes(step, folder, variables) for step in uses(python, version_of(wheel))
        ]
    if not all(results):
        sys.exit(f"{wheel.name} is not ready")
    print(f"{wheel.name} is ready")


if __name__ == "__main__":
    main()
