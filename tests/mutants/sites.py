"""Places in sources where one small change makes a mutant.

Mutation testing (DeMillo, Lipton and Sayward, 1978): a change that no test notices shows
what the tests do not check. The changes here are those of launch geometry, bounds,
strides and checks: a comparison that includes its bound or leaves it out, an off by one,
a minimum that is a maximum, a product that is a sum, a quotient that is rounded down, a
check that is never made.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# An operand whose end is where the next operator or bracket begins.
_OPERAND = r"[A-Za-z_][\w.]*(?:->\w+)*(?:\[[\w.]+\])?(?:\(\w*\))?|\d+"
_BEFORE = r"(?:[(\[]|&& |\|\| |return |[^=!<>]= |[?:;,] )"
_COMPARISON = re.compile(
    rf"{_BEFORE}(?P<a>{_OPERAND}) (?P<op><=?|>=?|==|!=) (?P<b>{_OPERAND})"
    r"(?=\)| &&| \|\||;| \?)"
)
_STEP = re.compile(r"(?<=[\w)\]] [+-] )1(?=[),;\]])")
_PRODUCT = re.compile(
    rf"{_BEFORE}(?P<a>{_OPERAND}) \* (?P<b>{_OPERAND})(?=[);\]]|, | \+)"
)
_EXTREME = re.compile(r"(?:\bstd::|\b)(?P<name>min|max)(?:<\w+>)?(?=\()")
_QUOTIENT = re.compile(r"\bdivide_up(?=\()")
_CHECK = re.compile(r"^\s*(?:\} else )?if (?=\(.*\) return(?: false| nullptr)?;$)")

_OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}


@dataclass(frozen=True, slots=True)
class Site:
    """The text `old` at a position of a line (from 0), and what replaces it."""

    line: int
    begin: int
    old: str
    new: str

    @property
    def end(self) -> int:
        return self.begin + len(self.old)


def sites(text: str) -> Iterator[Site]:
    """All sites of a source in C, C++ or OpenCL C."""
    for number, line in enumerate(text.split("\n")):
        code = line.partition("//")[0]
        # Outside of functions are declarations.
        if not code.startswith(" ") or code.lstrip().startswith(
            ("static", "const static")
        ):
            continue
        for begin, old, new in _of_line(code):
            yield Site(number, begin, old, new)


def _of_line(code: str) -> Iterator[tuple[int, str, str]]:
    for found in _COMPARISON.finditer(code):
        a, op, b = found["a"], found["op"], found["b"]
        yield found.start("a"), f"{a} {op} {b}", f"{a} {_OTHER[op]} {b}"
    for found in _STEP.finditer(code):
        yield found.start(), "1", "0"
    for found in _PRODUCT.finditer(code):
        a, b = found["a"], found["b"]
        yield found.start("a"), f"{a} * {b}", f"{a} + {b}"
    for found in _EXTREME.finditer(code):
        if (call := _called(code, found)) is not None:
            other = {"min": "max", "max": "min"}[found["name"]]
            yield found.start(), call, call.replace(found["name"], other, 1)
    for found in _QUOTIENT.finditer(code):
        call = _called(code, found)
        if call is not None and call.count(",") == 1:
            a, b = call[len("divide_up(") : -1].split(",")
            yield found.start(), call, f"(({a}) / ({b.lstrip()}))"
    if found := _CHECK.search(code):
        condition = code[found.end() : code.rindex(")") + 1]
        yield found.end(), condition, f"(false && {condition})"


def _called(code: str, found: re.Match[str]) -> str | None:
    """The call that begins with the match, if it ends in this line."""
    depth = 0
    for at in range(found.end(), len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return code[found.start() : at + 1]
    return None


def replaced(text: str, site: Site) -> str:
    """The source with one change."""
    return _with(text, site, site.new)


def switched(text: str, numbered: dict[int, Site]) -> str:
    """The C++ source with all changes, each behind a switch: `xpurt_mutant(number)`.
    So one build has all mutants (Untch, Offutt and Harrold, 1993). Sites of one line may
    not overlap."""
    for number, site in sorted(numbered.items(), key=lambda item: -item[1].begin):
        new, old = site.new, site.old
        chosen = f"((xpurt_mutant({number})) ? ({new}) : ({old}))"
        text = _with(text, site, chosen)
    return text


def _with(text: str, site: Site, new: str) -> str:
    lines = text.split("\n")
    line = lines[site.line]
    assert line[site.begin : site.end] == site.old
    lines[site.line] = line[: site.begin] + new + line[site.end :]
    return "\n".join(lines)
