"""The functions of the templates for kernels that compute in several types.

A row's kernel computes in one type, which its templates call C. A kernel that a compiler
made of several ops may need the same function in two types. So the texts of the
templates are repeated for each type, with the type's letter at the end of every name
that they define.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from xpurt.kernels.kinds.element_types import is_floating
from xpurt.kernels.kinds.row import Row
from xpurt.kernels.rows.table import ROWS
from xpurt.kernels.sources.source import (
    WIDE,
    DeviceTraits,
    Source,
    fill,
    finished,
    prelude,
    sub_group,
)

# A name that a template defines: a function, a macro or a constant.
_DEFINED = re.compile(r"^(?:static\s+[\w\s]*?(\w+)(?=\(|\[)|#define\s+(\w+))", re.M)
_OPERAND = re.compile(r"\ba(\d)\b")


@dataclass(frozen=True, slots=True)
class Functions:
    """The functions of templates in one type: its letter, and the templates' names.

    Without templates, those that every kernel in this type has.
    """

    letter: str
    templates: tuple[str, ...] = ()


@cache
def _typed(functions: Functions) -> tuple[str, frozenset[str]]:
    """The definitions, and the names that they define, without the letter."""
    letter = functions.letter
    whole = prelude(letter, letter, functions.templates)
    text = finished(whole.replace(fill("prelude"), ""), letter)
    names = {a or b for a, b in _DEFINED.findall(text)}
    names.add("C")
    return _renamed(text, names, letter), frozenset(names)


def _renamed(text: str, names: Iterable[str], letter: str) -> str:
    pattern = re.compile(rf"\b({'|'.join(sorted(names, key=len, reverse=True))})\b")
    return pattern.sub(rf"\1_{letter}", text)


def definitions(needed: Sequence[Functions]) -> str:
    """OpenCL C that defines these functions, once for each type."""
    merged: dict[str, dict[str, None]] = {}
    for each in needed:
        merged.setdefault(each.letter, {}).update(dict.fromkeys(each.templates))
    parts = [fill("prelude")]
    for letter, templates in sorted(merged.items()):
        parts.append(_typed(Functions(letter, tuple(templates)))[0])
    return "\n".join(parts)


@cache
def row_named(aten: str) -> Row | None:
    """The row of a pointwise op, with one expression for all its calls."""
    for row in ROWS:
        if isinstance(row, Row) and row.aten == aten and not row.overloads:
            return row if isinstance(row.expression, str) else None
    return None


def row_expression(
    row: Row, letter: str, operands: Sequence[str]
) -> tuple[str, Functions]:
    """The expression of a row for operands in the type of `letter`, and what it needs."""
    expression = str(row.expression)
    if not is_floating(letter) and row.integral is not None:
        expression = row.integral
    if letter == "t" and row.boolean is not None:
        expression = row.boolean
    functions = Functions(letter, row.functions)
    text = _renamed(finished(expression, letter), _typed(functions)[1], letter)
    filled = _OPERAND.sub(lambda match: f"({operands[int(match[1])]})", text)
    return f"({filled})", functions


def call(name: str, letter: str, operands: Sequence[str]) -> tuple[str, Functions]:
    """A call of a function that every kernel in this type has."""
    return f"{name}_{letter}({', '.join(operands)})", Functions(letter)


@dataclass(frozen=True, slots=True)
class _Kept:
    entry: str
    text: str


_kept: dict[str, _Kept] = {}


# The value of another lane of the sub-group.
_ACROSS = """\
#if LANES > 1
#define ACROSS(value, far) sub_group_shuffle_xor(value, far)
#else
#define ACROSS(value, far) value
#endif
"""


# Work-items of a sub-group that Intel's driver for CPUs makes four vectors of, with
# AVX-512.
_LANES_OF_FOUR = 64


def _four_vectors(device: DeviceTraits) -> str:
    """The attribute of kernels that compute with four vectors in turn."""
    if not device["has_wide_sub_groups"] or device["vector_width"] < WIDE:
        return ""
    return f"__attribute__((intel_reqd_sub_group_size({_LANES_OF_FOUR})))"


def keep_source(
    entry: str, kernel: str, needed: Sequence[Functions], templates: Sequence[str] = ()
) -> str:
    """Keeps the text of a kernel, to be built for any device. Returns the key under
    which C++ requests it.

    It may use the macros LANES, SUB_GROUP, FOUR_VECTORS, BY_GROUP, ACROSS(),
    work_item_of_lanes() and lane_id(), the functions of `needed`, and the texts of
    `templates`.
    """
    own = (finished(fill(name), "f") for name in templates)
    texts = [definitions(needed), *own, kernel]
    text = "\n".join(texts)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    key = f"compiled;{digest};{entry}"
    _kept[key] = _Kept(entry, text)
    return key


def kept_source(key: str, device: DeviceTraits) -> Source:
    """The source of a kept kernel for a device."""
    kept = _kept[key]
    lanes, attributes = sub_group(device)
    head = (
        f"{lanes}\n#define SUB_GROUP {attributes}\n"
        f"#define FOUR_VECTORS {_four_vectors(device)}\n"
        f"#define BY_GROUP {int(device['vector_width'] >= WIDE)}\n{_ACROSS}"
    )
    return Source(kept.entry, head + kept.text)
