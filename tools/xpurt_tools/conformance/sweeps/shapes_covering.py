"""A quick run of the sweep of shapes: few cases, which together have each boundary of each
constant, each form of operands, and each path of a kernel that a form leads to."""

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from xpurt_tools.conformance.sweeps.shapes_cases import Call, Case
from xpurt_tools.conformance.sweeps.shapes_constants import boundaries

LONG = 1000  # a constant this large is a chunk of a line
VERY_LONG = 10 * LONG
MOST, MOST_LONG, MOST_VERY_LONG = 1 << 15, 1 << 19, 300_000  # elements


@dataclass(frozen=True)
class Form:
    """layout, parts: of a case. least: the axis beside the one of the boundary that has
    its least size, mostly 1: whether a line is adjacent depends on that. Its number; None
    for no axis."""

    layout: str
    parts: int = 1
    least: int | None = None


# In two parts where an axis has the size 1: then there are three dimensions, as without
# either, and few kernels to build.
FORMS = (
    Form("contiguous"),
    Form("contiguous", 2, -1),
    Form("turned"),
    Form("stepped", 2, 0),
    Form("rolled", 2, -1),
    Form("expanded"),
)
# Five dimensions, for kernels that fold those from the third on.
FOLDED = Form("stepped", 2)
FOLDING = ("pointwise", "reductions")


def covering(calls: Sequence[Call], of: tuple[int, ...]) -> Iterator[tuple[Call, Case]]:
    """The boundaries of each constant along the first axis of one of the calls, and each
    constant + 1 along another axis; those of a chunk for each of the calls. The forms are
    divided among the calls of a kind, since their kernels have one template."""
    draw = random.Random(0)
    sizes = sorted({size for constant in of for size in boundaries(constant)})
    wanted = [(0, size) for size in sizes if size < LONG]
    wanted += [(1 + at // len(calls), constant + 1) for at, constant in enumerate(of)]
    draw.shuffle(wanted)
    for constant in of:
        below, at, above = boundaries(constant)
        if constant > VERY_LONG:
            wanted += [(0, above), (0, at), (0, below), (1, above), (2, above)]
        elif constant > LONG:
            # A second chunk matters most.
            wanted += [(0, size) for size in (at, below, *[above] * 4) for _ in calls]
    turn: Counter[str] = Counter()
    for number, (axis, size) in enumerate(wanted):
        at = number % len(calls)
        call = calls[at]
        forms = (*FORMS, FOLDED) if call.kind in FOLDING else FORMS
        of_call = forms[at :: len(calls)]
        form = of_call[turn[call.name] % len(of_call)]
        turn[call.name] += 1
        case = _case(call, axis, size, form, draw)
        if case is not None:
            yield call, case


def _case(
    call: Call, number: int, size: int, form: Form, draw: random.Random
) -> Case | None:
    axes = call.free_axes
    axis = axes[number and 1 + (number - 1) % (len(axes) - 1)] if axes[1:] else axes[0]
    layout = form.layout if form.layout in call.layouts else draw.choice(call.layouts)
    others = [each for each in axes[1:] if each != axis]
    least = others[form.least] if others and form.least is not None else None
    wanted: dict[str, Sequence[int]] = {}
    for each, few in call.axes.items():
        name = each.rstrip("!")
        if each == axis:
            wanted[name] = [size]
        elif name != each:  # kernels are built for each of these
            wanted[name] = few[:: max(len(few) // 2, 1)]
        else:
            wanted[name] = (
                [min(few)] if each == least else [n for n in few if n > 1] or few
            )
    seed = draw.randrange(1 << 30)
    smallest = {name: [min(few)] for name, few in wanted.items()}
    alone = {each: [size if each == axis else min(call.axes[each])] for each in axes}
    for choice in (wanted, {**smallest, **alone}):
        cases = [
            Case(dict(zip(choice, sizes, strict=True)), layout, form.parts, seed)
            for sizes in product(*choice.values())
        ]
        cases.sort(key=call.work_of)
        most = min(call.most, _most(size))
        count = bisect_right(cases, most, key=call.work_of)
        if count and size <= call.most_size:
            # With many work-groups one that writes too much does so after others.
            return cases[draw.randrange(count // 2 if size > LONG else 0, count)]
    return None


def _most(size: int) -> int:
    if size < LONG:
        return MOST
    return MOST_LONG if size < VERY_LONG else MOST_VERY_LONG
