"""Reductions of generated kernels: accumulators, and how lanes combine them.

Note [Loops of generated reductions]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A kernel with a reduction loops over the reduced elements, in one of two forms. If the
reduced elements are adjacent in memory, a sub-group computes one result, its lanes load
adjacent elements, and at the end the lanes combine what they have. Otherwise a
work-item computes one result, and adjacent work-items load adjacent elements. The form
is chosen by the strides of the loads. A large reduction with few results is divided by
Inductor into two kernels, so that all work-items have work.

Each accumulator has a statement for one element, and one for another accumulator. A
variance is accumulated as sums of differences from the first element: that takes no
division per element, and does not cancel.
"""

from dataclasses import dataclass
from typing import Any, Final

import torch

from xpurt.compiler.opencl_types import computed, computed_letter, value_type

_LEAST: Final = {
    "t": "0",
    "u": "0",
    "c": "CHAR_MIN",
    "s": "SHRT_MIN",
    "i": "INT_MIN",
} | {
    "l": "LONG_MIN",
    "f": "(-INFINITY)",
    "d": "(-(double)INFINITY)",
}
_MOST: Final = {"t": "1", "u": "UCHAR_MAX", "c": "CHAR_MAX", "s": "SHRT_MAX"} | {
    "i": "INT_MAX",
    "l": "LONG_MAX",
    "f": "INFINITY",
    "d": "((double)INFINITY)",
}


@dataclass(frozen=True, slots=True)
class Accumulator:
    """The code of one reduction. In the texts of a sum of two parts, each of `names`
    with "other_" before it is the part of another lane.

    names: variables, by type. declare: before the loop. add: for an element. combine:
    for another lane. results: the variables with the results.
    """

    names: tuple[tuple[str, str], ...]
    declare: str
    add: str
    combine: str
    results: tuple[str, ...]


def accumulator(
    number: int, kind: str, dtype: torch.dtype, source: torch.dtype, value: Any, at: str
) -> Accumulator:
    """The code of a reduction of `value`, which is a tuple for some kinds. `at`: the
    position of the element."""
    if kind == "welford_reduce":
        return _variance(number, dtype, value)
    if kind == "welford_combine":
        return _combined_variance(number, dtype, value)
    if kind.startswith("arg"):
        return _position(number, kind, source, value, at)
    if kind == "online_softmax_reduce":
        return _softmax(number, dtype, value)
    return _simple(number, kind, dtype, source, value)


def _simple(
    number: int, kind: str, dtype: torch.dtype, source: torch.dtype, value: Any
) -> Accumulator:
    name = f"acc{number}"
    if kind in ("max", "min"):
        of = computed(source)
        letter = computed_letter(of)
        sign, first = (">", _LEAST) if kind == "max" else ("<", _MOST)
        start = first[letter]
        nan = "{a} != {a} || " if of.is_floating_point else ""
        form = f"({nan}{{a}} {sign} {{b}} ? {{a}} : {{b}})"
    else:
        of = torch.bool if kind == "any" else computed(dtype)
        forms = {
            "sum": ("0", "({a} + {b})"),
            "prod": ("1", "({a} * {b})"),
            "any": ("0", "({a} | ({b} != 0))"),
            "xor_sum": ("0", "({a} ^ {b})"),
        }
        if kind not in forms:
            raise NotImplementedError(f"no reduction of kind {kind}")
        start, form = forms[kind]
    type_ = value_type(of)
    return Accumulator(
        ((type_, name),),
        f"{type_} {name} = {start};",
        f"{name} = {form.format(a=name, b=value)};",
        f"{name} = {form.format(a=name, b=f'other_{name}')};",
        (name,),
    )


def _position(
    number: int, kind: str, source: torch.dtype, value: Any, at: str
) -> Accumulator:
    """The first of the largest or the smallest elements; NaN comes before all others."""
    of = computed(source)
    letter, type_ = computed_letter(of), value_type(of)
    best, where = f"best{number}", f"at{number}"
    largest = kind.startswith("argmax")
    start = (_LEAST if largest else _MOST)[letter]
    if isinstance(value, tuple):
        value, at = value
    better = f"{{v}} {'>' if largest else '<'} {best}"
    same = f"{{v}} == {best}"
    if of.is_floating_point:
        better = f"{better} || ({{v}} != {{v}} && {best} == {best})"
        same = f"{same} || ({{v}} != {{v}} && {best} != {best})"
    rule = f"{better} || (({same}) && {{i}} < {where})"

    def take(v: Any, i: Any) -> str:
        test = rule.format(v=v, i=i)
        return f"if ({test}) {{ {best} = {v}; {where} = {i}; }}"

    results: tuple[str, ...] = (where,)
    if kind.endswith("_with_value"):
        results = (best, where)
    elif kind.endswith("_value"):
        results = (best,)
    return Accumulator(
        ((type_, best), ("long", where)),
        f"{type_} {best} = {start}; long {where} = LONG_MAX;",
        take(value, at),
        take(f"other_{best}", f"other_{where}"),
        results,
    )


# The variance of two parts: Chan, Golub, LeVeque, "Updating Formulae and a Pairwise
# Algorithm for Computing Sample Variances", 1979.
_TWO_PARTS: Final = (
    "{{ const {t} sum_w = {w} + {v}; const {t} part = sum_w == 0 ? 0 : {v} / sum_w; "
    "const {t} delta = {n} - {m}; {m} += delta * part; "
    "{s} += {r} + delta * delta * {w} * part; {w} = sum_w; }}"
)


def _moments(number: int) -> tuple[str, str, str]:
    return f"mean{number}", f"squares{number}", f"weight{number}"


def _combine_moments(number: int, type_: str, n: str, r: str, v: str) -> str:
    mean, squares, weight = _moments(number)
    return _TWO_PARTS.format(t=type_, m=mean, s=squares, w=weight, n=n, r=r, v=v)


def _variance(number: int, dtype: torch.dtype, value: Any) -> Accumulator:
    type_ = value_type(computed(dtype))
    mean, squares, weight = names = _moments(number)
    first, total = f"first{number}", f"total{number}"
    return Accumulator(
        tuple((type_, name) for name in names),
        f"{type_} {first} = 0, {total} = 0, {mean}, {squares} = 0, {weight} = 0;",
        f"{first} = {weight} == 0 ? {value} : {first}; "
        f"{{ const {type_} shifted = {value} - {first}; {total} += shifted; "
        f"{squares} += shifted * shifted; {weight} += 1; }}",
        _combine_moments(number, type_, *(f"other_{name}" for name in names)),
        names,
    )


def before_combining(number: int, kind: str) -> str:
    """The statement between the loop and the combination of lanes."""
    if kind != "welford_reduce":
        return ""
    mean, squares, weight = _moments(number)
    first, total = f"first{number}", f"total{number}"
    return (
        f"{mean} = {weight} == 0 ? 0 : {total} / {weight}; "
        f"{squares} -= {total} * {mean}; {mean} += {first};"
    )


def _combined_variance(number: int, dtype: torch.dtype, value: Any) -> Accumulator:
    type_ = value_type(computed(dtype))
    mean, squares, weight = names = _moments(number)
    return Accumulator(
        tuple((type_, name) for name in names),
        f"{type_} {mean} = 0, {squares} = 0, {weight} = 0;",
        _combine_moments(number, type_, *map(str, value)),
        _combine_moments(number, type_, *(f"other_{name}" for name in names)),
        names,
    )


def _softmax(number: int, dtype: torch.dtype, value: Any) -> Accumulator:
    type_ = value_type(computed(dtype))
    most, total = f"most{number}", f"total{number}"

    def add(other: str, scaled: str) -> str:
        return (
            f"{{ const {type_} before = {most}; "
            f"{most} = before != before || before > {other} ? before : {other}; "
            f"{total} = (before == {most} ? {total} : {total} * exp(before - {most}))"
            f" + {scaled}({other} == {most} ? 1 : exp({other} - {most})); }}"
        )

    return Accumulator(
        ((type_, most), (type_, total)),
        f"{type_} {most} = -INFINITY, {total} = 0;",
        add(str(value), ""),
        add(f"other_{most}", f"other_{total} * "),
        (most, total),
    )


def combination(found: Accumulator) -> str:
    """The loop in which the lanes of a sub-group combine what they have."""
    lines = ["for (uint far = LANES / 2; far > 0; far /= 2) {"]
    lines += [
        f"  const {type_} other_{name} = ACROSS({name}, far);"
        for type_, name in found.names
    ]
    lines += [f"  {found.combine}", "}"]
    return "\n".join(lines)
