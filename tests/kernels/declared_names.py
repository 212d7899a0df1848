"""The names that a text in OpenCL C declares, and the names of OpenCL C's own functions.

A driver may define its functions as macros: PoCL has `#define step _cl_step`. A
program that declares such a name then means another one in some places, and does not
build, or builds with another meaning.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from xpurt.startup.driver import library_directory

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\(([^)]*)\))?(.*)$", re.M)
_DIRECTIVE = re.compile(r"^[ \t]*#.*$", re.M)
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\S")
_NAME = re.compile(r"[A-Za-z_]\w*")
_FUNCTION = re.compile(r"\b([A-Za-z]\w*)\s*\((?!\()")
_SCALAR = r"bool|u?char|u?short|u?int|u?long|half|float|double"
# Types of the kernels' own begin with a capital.
_TYPE = re.compile(rf"(?:{_SCALAR})(?:2|3|4|8|16)?|size_t|void|filled_in|[A-Z]\w*")
_QUALIFIERS = {"const", "restrict", "volatile", "static", "inline"}


@cache
def functions_of_opencl() -> frozenset[str]:
    """The functions that clang's header declares, which SYCL's wheel brings."""
    directory = library_directory()
    assert directory is not None, "the libraries of SYCL are missing"
    (header,) = directory.glob("clang/*/include/opencl-c.h")
    text = _COMMENT.sub("", header.read_text()).replace("\\\n", " ")
    return frozenset(_FUNCTION.findall(_DIRECTIVE.sub("", text)))


def declared_names(text: str) -> set[str]:
    """Names of functions, parameters, variables, members, types and macros."""
    text = _COMMENT.sub(" ", text.replace("\\\n", " "))
    found: set[str] = set()
    parts = [_DIRECTIVE.sub("", text)]
    for name, parameters, body in _DEFINITION.findall(text):
        found |= {name, *_NAME.findall(parameters)}
        parts.append(body)
    for part in parts:
        found |= set(_declared(_TOKEN.findall(part)))
    return found


def _declared(tokens: list[str]) -> Iterator[str]:
    for at, (before, token) in enumerate(pairwise(tokens), 1):
        if not _NAME.fullmatch(token) or token in _QUALIFIERS or _TYPE.fullmatch(token):
            continue
        if before == "*":
            is_declared = _is_pointer(tokens, at)
        else:
            is_declared = before in _QUALIFIERS or bool(_TYPE.fullmatch(before))
        if is_declared:
            yield token
            yield from _other_declarators(tokens[at + 1 :])


def _is_pointer(tokens: list[str], name: int) -> bool:
    """Whether a type stands before the `*` of this name, not a factor."""
    before = next((each for each in reversed(tokens[:name]) if each != "*"), "")
    ends = tokens[name + 1 : name + 2]
    return ends != ["("] and (before == "const" or bool(_TYPE.fullmatch(before)))


def _other_declarators(tokens: list[str]) -> Iterator[str]:
    """The names after the commas of `long a = f(x, y), b;`."""
    depth = 0
    for before, token in pairwise(["", *tokens]):
        if depth == 0 and (token in ";{)" or (token == "(" and not before)):
            return
        depth += (token in "([{") - (token in ")]}")
        if depth == 0 and before == "," and _NAME.fullmatch(token):
            yield token
