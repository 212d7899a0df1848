"""The sizes at which kernels change what they do: next to each number in a generator.

Note [Constants of the generators]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A kernel can be wrong where a line is divided into chunks, a tile is cut, or a work-group
has more work-items than there are lines. All of these places are numbers: in the C++ that
computes a range, in a template, in the text of a step, in the compiler. They are read from
there, named or not, so that a new one is swept without an entry in a table. What a number
means is not asked: a size too many costs a millisecond. Numbers of a device (lanes of a
sub-group, blocks of a matrix product) are read from the keys under which it requests
kernels.

Rejected: a declared table that launches and the sweep both read. A number that is written
into a kernel's text, as the run of 16 that a sort begins with, has no place in it, and
one that is not declared is not swept.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import xpurt
from xpurt.kernels import ROWS

PACKAGE = Path(xpurt.__file__).parent
CSRC = (PACKAGE / "csrc" / "rows",)
TEMPLATES = (PACKAGE / "kernels" / "sources" / "templates",)
GENERATORS = sorted(PACKAGE.glob("compiler/opencl_*.py"))
LEAST, MOST = 4, 1 << 20
# A template without these computes a function of one element.
_LOOPS = re.compile(r"get_(global|local|group)_id|LANES|TILE")

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"", re.DOTALL)
_NUMBER = re.compile(
    r"(?<![\w.#])(\d+)(?:LL?|u)?(?:\s*(<<|\*)\s*(\d+))?(?:LL?|u)?(?![\w.])"
)
PRIMES = (2, 3, 5, 7, 13, 31, 61, 127, 251, 509, 1021, 2039, 8191, 10007, 65521, 131071)


class NoSources(Exception):
    """The package has no C++ sources: it was installed from a wheel."""


def numbers_in(text: str) -> set[int]:
    """The integers in C or in Python, as sizes: "1 << 12" is 4096."""
    found = set()
    for first, sign, second in _NUMBER.findall(_COMMENT.sub(" ", text)):
        found |= {int(first)} | ({int(second)} if sign == "*" else set())
        if sign == "<<":
            found.add(int(first) << min(int(second), 64))
    return {number for number in found if LEAST <= number <= MOST}


def numbers_in_python(text: str) -> set[int]:
    """Those in the code and in its strings, without docstrings and comments."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                each for each in body if not _is_text(each)
            ] or [ast.Pass()]
    found = numbers_in(ast.unparse(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= numbers_in(node.value)
    return found


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _of_rows() -> Iterator[int]:
    """What steps, their shares and their scratch tensors contain."""
    for row in ROWS:
        for step in getattr(row, "steps", ()):
            yield from numbers_in(step.text)
            yield from step.share
        for scratch in getattr(row, "scratch", ()):
            yield scratch.copies


@cache
def constants() -> tuple[int, ...]:
    """Each number of the generators, in order. Raises NoSources."""
    sources = [path for folder in CSRC for path in sorted(folder.glob("*.[ch]*"))]
    if not sources:
        raise NoSources(
            f"the sweep of shapes reads the sizes from the sources, and {CSRC[0]} has "
            "none: run it in a checkout of xpurt"
        )
    found = set(_of_rows())
    for path in sources:
        found |= numbers_in(path.read_text())
    for path in (path for folder in TEMPLATES for path in folder.rglob("*.cl")):
        text = path.read_text()
        if _LOOPS.search(text):
            found |= numbers_in(text)
    for path in GENERATORS:
        found |= numbers_in_python(path.read_text())
    return tuple(sorted(each for each in found if LEAST <= each <= MOST))


def boundaries(constant: int) -> tuple[int, int, int]:
    return constant - 1, constant, constant + 1


def sizes(of: Iterable[int]) -> list[int]:
    """The boundaries of each constant, of its multiples, and of its sums with others;
    and primes, at which nothing divides."""
    of = sorted(set(of))
    found = set(PRIMES)
    for number in of:
        for multiple in (1, 2, 3, 5):
            found |= set(boundaries(number * multiple))
        found |= {number + other for other in of if other < number}
    return sorted(found)
