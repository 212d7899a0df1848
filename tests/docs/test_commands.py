"""Commands in the pages: they are not run, but they and their options exist."""

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import ROOT, Block, blocks

from pytest_xpurt import pytest_addoption
from xpurt.__main__ import main
from xpurt.config import VARIABLES

COMMANDS = [
    (block, line)
    for block in blocks("sh")
    for line in block.text.replace("\\\n", " ").splitlines()
    if line.split("#")[0].strip()
]


def name(value: object) -> str:
    return str(value)


def wrong(line: str) -> str | None:
    """The error in a command of a page; None if there is none."""
    words = shlex.split(line, comments=True)
    while "&&" in words:
        at = words.index("&&")
        found = wrong(shlex.join(words[:at]))
        if found:
            return found
        words = words[at + 1 :]
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        variable = words.pop(0).split("=")[0]
        if variable.startswith("XPURT_") and variable not in VARIABLES:
            return f"there is no variable {variable}"
    return next((found for found in _wrong(words) if found), None)


def _wrong(words: list[str]) -> Iterator[str | None]:
    match words:
        case ["python", "-m", "xpurt", *rest] | ["xpurt", *rest]:
            yield _wrong_command(rest)
        case ["make", *rest]:
            yield from map(_wrong_target, rest)
        case ["pytest", *rest]:
            known = _pytest_options()
            for word in rest:
                if word.startswith("--") and word.split("=")[0] not in known:
                    yield f"pytest has no option {word} of xpurt's"
        case ["cd", folder]:
            yield None if (ROOT / folder).is_dir() else f"there is no folder {folder}"
        case ["python", "-m", module]:
            file = f"tests/{module.replace('.', '/')}.py"
            yield None if (ROOT / file).is_file() else f"there is no file {file}"
        case ["torchrun", "--nproc-per-node", _, *rest]:
            return wrong(shlex.join(["python", *rest]))
        case ["python", file, *_] if file.endswith(".py"):
            yield None if (ROOT / file).is_file() else f"there is no file {file}"
        case ["pip", "install", *rest]:
            for extra in re.findall(r"\.\[([\w,]+)\]", " ".join(rest)):
                for each in extra.split(","):
                    yield None if f"\n{each} = [" in _pyproject() else f"no {each}"
        case ["pre-commit", "install"] | ["pip", "freeze", *_]:
            return
        case _:
            yield f"unknown to this test: {words}"


def _wrong_command(arguments: list[str]) -> str | None:
    """With --help a command's options are parsed, and nothing is run."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([*arguments, "--help"])
        except SystemExit as ended:
            if ended.code:
                return err.getvalue()
    for word in arguments:
        # Unknown options are complained of after --help.
        if word.startswith("--") and not re.search(rf"{word}\b", out.getvalue()):
            return f"there is no option {word}"
    return None


def _wrong_target(word: str) -> str | None:
    makefile = (ROOT / "Makefile").read_text()
    variable = re.fullmatch(r"([A-Z]+)=.*", word)
    pattern = rf"^{variable[1]} [?:]?=" if variable else rf"^{re.escape(word)}:"
    found = re.search(pattern, makefile, re.MULTILINE)
    return None if found else f"the Makefile has no {word}"


def _pytest_options() -> set[str]:
    parser = pytest.Parser(_ispytest=True)
    pytest_addoption(parser)
    group = parser.getgroup("xpurt")
    return {name for option in group.options for name in option.names()}


def _pyproject() -> str:
    return (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize(("block", "line"), COMMANDS, ids=name)
def test_a_command_exists(block: Block, line: str) -> None:
    assert wrong(line) is None, f"{block.page}:{block.line}"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("python -m xpurt benchmark", "no command"),
        ("python -m xpurt bench --fast", "no option --fast"),
        ("python -m xpurt demo --epochs many", "invalid"),
        ("XPURT_MAPING=CPU python -m xpurt devices", "XPURT_MAPING"),
        ("make tset", "no tset"),
        ("make test AGRS=-x", "no AGRS=-x"),
        ("pytest --xpu-maping CPU", "--xpu-maping"),
        ("python examples/no_such.py", "no_such.py"),
        ("cd no_such && python -m pytorch_internals.changed", "no_such"),
        ("python -m pytorch_internals.no_such", "no_such"),
        ('pip install ".[no_such]"', "no_such"),
        ("pip install x && make tset", "no tset"),
        ("frobnicate", "unknown"),
    ],
)
def test_a_fault_is_found(line: str, fault: str) -> None:
    assert fault in str(wrong(line))


def test_variables_of_the_page_are_those_that_there_are() -> None:
    page = Path(ROOT / "docs" / "commands.md").read_text()
    assert set(re.findall(r"XPURT_[A-Z0-9_]*[A-Z0-9]", page)) == set(VARIABLES)
