"""xpurt without the package of its extra `tools`: all works but what that package does."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_layers import FILES_OF_XPURT, module_name

from xpurt.command_line.cli import TOOLS

REMEDY = 'wants xpurt-tools, which is not installed: pip install "xpurt[tools]"'


@pytest.fixture
def without_tools(tmp_path: Path) -> dict[str, str]:
    """Variables for a process that finds no xpurt_tools."""
    (tmp_path / "xpurt_tools").mkdir()
    (tmp_path / "xpurt_tools" / "__init__.py").write_text(
        "raise ModuleNotFoundError(name='xpurt_tools')"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path}


def run(variables: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize("command", TOOLS)
def test_a_command_names_the_extra(command: str, without_tools: dict[str, str]) -> None:
    done = run(without_tools, "-m", "xpurt", command, "--help")
    assert done.returncode == 1
    assert done.stderr == f'xpurt: the command "{command}" {REMEDY}\n'
    assert done.stdout == ""


def test_help_lists_every_command(without_tools: dict[str, str]) -> None:
    done = run(without_tools, "-m", "xpurt", "--help")
    assert done.returncode == 0, done.stderr
    for command in ("devices", *TOOLS):
        assert f"    {command}" in done.stdout


@pytest.mark.rest
def test_names_of_the_simulator(without_tools: dict[str, str]) -> None:
    """Plans are xpurt's own: the compiler makes them."""
    code = "from xpurt.mapping import *; print(plan(TaskGraph([[1.0]], [])).makespan)"
    done = run(without_tools, "-c", code)
    assert done.stdout == "1.0\n", done.stderr
    done = run(without_tools, "-c", "from xpurt.mapping import simulate")
    assert f"MissingExtra: xpurt.mapping.simulate {REMEDY}" in done.stderr


def test_the_template_of_a_package(without_tools: dict[str, str]) -> None:
    code = "import pathlib, xpurt.prototype as p; p.new_package('ipu', pathlib.Path())"
    done = run(without_tools, "-c", code)
    assert f"MissingExtra: xpurt.prototype.new_package {REMEDY}" in done.stderr


def test_with_the_tools_the_names_are_those_of_the_simulator() -> None:
    from xpurt import mapping
    from xpurt_tools import simulation

    for name in mapping._OF_THE_SIMULATOR:
        assert getattr(mapping, name) is getattr(simulation, name)


def names_the_tools(source: str) -> bool:
    """Whether a string in `source`, other than a docstring, has the tools' package."""
    tree = ast.parse(source)
    docstrings = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and ast.get_docstring(node) is not None
    }
    return any(
        "xpurt_tools" in str(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node not in docstrings
    )


def test_one_function_loads_the_tools() -> None:
    """By their name, so that programs can do without them."""
    loaders = {
        module_name(path)
        for path in FILES_OF_XPURT
        if names_the_tools(path.read_text())
    }
    assert loaders == {"xpurt.startup.extras"}


@pytest.mark.parametrize(
    ("source", "is_one"),
    [
        ("import_module('xpurt_tools.bench')", True),
        ("import_module(f'xpurt_tools.{name}')", True),
        ('def f():\n    """Of xpurt_tools."""', False),
    ],
)
def test_another_loader_is_seen(source: str, is_one: bool) -> None:
    assert names_the_tools(source) is is_one
