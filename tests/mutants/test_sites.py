"""The finder of places for mutants, on lines whose mutants are known."""

import pytest
from mutants.python_sites import SWITCH, python_sites, switched_python
from mutants.sites import replaced, sites, switched

LINES = {
    "  if (i >= size) return;": [
        "  if (i > size) return;",
        "  if (false && (i >= size)) return;",
    ],
    "  if (a < b && c == 0) {": [
        "  if (a <= b && c == 0) {",
        "  if (a < b && c != 0) {",
    ],
    "  if (a || f(b)) return nullptr;": ["  if (false && (a || f(b))) return nullptr;"],
    # Not a - (b + 1), where a larger expression is replaced.
    "  const long last = a - b + 1;": ["  const long last = a - b + 0;"],
    "  return row * stride;": ["  return row + stride;"],
    "  at = 2 + row * stride;": [],
    "  x = std::min<long>(f(a), b);": ["  x = std::max<long>(f(a), b);"],
    "  x = divide_up(a + 7, b);": ["  x = ((a + 7) / (b));"],
    # Declarations, comments, and what goes on in the next line.
    "long f(long n) { return n + 1; }": [],
    "  static const long most = n + 1;": [],
    "  return n;  // n + 1": [],
    "  x = max(f(a),": [],
}


@pytest.mark.parametrize("line", LINES)
def test_mutants_of_a_line(line: str) -> None:
    text = f"first\n{line}\nlast"
    found = [replaced(text, site).split("\n") for site in sites(text)]
    assert [lines[1] for lines in found] == LINES[line]
    assert all(lines[::2] == ["first", "last"] for lines in found)


def test_all_changes_of_a_source_behind_a_switch() -> None:
    text = "  if (a < b && f(n + 1)) return false;"
    found = [site for site in sites(text) if not site.new.startswith("(false")]
    assert switched(text, dict(enumerate(found, 7))) == (
        "  if (((xpurt_mutant(7)) ? (a <= b) : (a < b)) && "
        "f(n + ((xpurt_mutant(8)) ? (0) : (1)))) return false;"
    )


PYTHON = {
    "if a < b: return": ["if (a) <= (b): return"],
    "return f(a) is None": ["return (f(a)) is not (None)"],
    "return not a": ["return bool(a)"],
    "x: list[int] = [n + 1]": ["x: list[int] = [(n) - (1)]"],
    "return max(a, b)": ["return min(a, b)"],
    "return a if b else c": ["return (c) if (b) else (a)"],
    "return a and b(c)": ["return (a) or (b(c))"],
    # Texts, and what fails whatever is computed.
    'return f"{n + 1}"': [],
    'return [n] + ["a"]': [],
}


@pytest.mark.parametrize("line", PYTHON)
def test_mutants_of_a_line_of_python(line: str) -> None:
    text = f"def f():\n    {line}"
    found = [replaced(text, site).split("\n    ")[1] for site in python_sites(text)]
    assert found == PYTHON[line]


def test_what_is_outside_of_functions_is_left() -> None:
    assert not list(python_sites("if a < b:\n    c = 1 + 2\n"))


def test_all_changes_of_a_python_source_behind_a_switch() -> None:
    text = '"""A text."""\n\nimport os\n\ndef f(a):\n    return a < 1'
    switched_text = switched_python(text, dict(enumerate(python_sites(text), 7)))
    assert switched_text == (
        f'"""A text."""\n\n{SWITCH}import os\n\ndef f(a):\n'
        "    return (((a) <= (1)) if xpurt_mutant(7) else (a < 1))"
    )
