"""Changes of OpenCL C, as a programmer might make by mistake."""

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """pattern, instead: of one place.
    unless: why a place may do the same after the change.
    probe: what takes the place on the plain device, where that is something else.
    """

    what: str
    pattern: str
    instead: str
    unless: str
    probe: str = ""


_SAME_BYTES = "the recorded launches do not come to it, or multiply it by 0"
_BOUND = "a bound is off by one"
_BOUND_IS_MET = "no work-item or step of the recorded launches is at the bound"
_STRIDE = "a stride is one too large"
_NOT_SET = "an initial value is missing"
_NOT_SET_UNLESS = "the recorded launches do not use the initial value"
_ADDRESS = "an address is one too large"

CHANGES = (
    Change(
        "a barrier is left out",
        r"\bbarrier\([^)]*\);",
        ";",
        "no order of the work-items gives other bytes",
    ),
    Change(
        _BOUND,
        r"(?m)^(\s*if \([^\n]*?) >= (?=[^\n]*\) (?:return|continue|\{))",
        r"\1 > ",
        _BOUND_IS_MET,
    ),
    Change(
        _BOUND,
        r"(?m)^(\s*if \([^\n]*?) < (?=[a-z])",
        r"\1 <= ",
        _BOUND_IS_MET,
    ),
    Change(
        "a loop has one step more",
        r"(for \([^;\n]*; \w+) < (?=\w)",
        r"\1 <= ",
        "the recorded launches do not come to the loop, or its last step does nothing",
    ),
    Change(
        "the first step of a loop is left out",
        r"(for \((?:long|int|uint) \w+ = )0(?=[;,])",
        r"\g<1>1",
        "the recorded launches do not come to the loop, or its first step does nothing",
    ),
    Change(
        "an upper limit is left out",
        r"\bmin\(([^(),]+), [^(),]+\)",
        r"(\1)",
        "the recorded launches are below the limit",
    ),
    Change(_STRIDE, r"\b(\w+_stride\([^()]*\))", r"(1 + \1)", _SAME_BYTES),
    Change(
        _STRIDE,
        r"\b(layout\.(?:stride\[\d\]\[\d\]|stride\[\d\](?!\[)|kept_in\[\w\]"
        r"|(?:a|b|out|query|key|value|grad|sums)\[\d\]))",
        r"(1 + \1)",
        _SAME_BYTES,
    ),
    Change(
        _NOT_SET,
        r"(?<![(\w] )(?<![(\w])(C|long|int) (\w+) = (?:0|LOWEST)(?=[;,])",
        r"\1 \2",
        _NOT_SET_UNLESS,
        r"\1 \2 = 77",
    ),
    Change(
        _NOT_SET,
        r"\b(\w+(?:\[[^\]\n]+\])+) = 0;",
        ";",
        _NOT_SET_UNLESS,
        r"\1 = 77;",
    ),
    Change(
        "a store is left out",
        r"\b(?:\w+_store|put)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\);",
        ";",
        "the recorded launches do not come to the store",
    ),
    Change(
        _ADDRESS,
        r"\b(\w+_store\(|put\(\w+, |p\[(?=[^\]\n]+\] = ))",
        r"\g<1>1 + ",
        "the recorded launches do not come to the store",
    ),
    Change(
        "two work-items take the same element",
        r"= (get_global_id\(0\)|work_item_of_lanes\(\));",
        r"= \1 / 2;",
        "there is one work-item",
    ),
    Change(
        "two work-items take the same place in local memory",
        r"\b(get_local_id\(\d\))",
        r"(\1 / 2)",
        "there is one work-item in a group",
    ),
)

_DEAD = re.compile(r"(?m)^#if 0\b.*?^#endif", re.DOTALL)


def changed(source: str, change: Change) -> Iterator[tuple[int, str, str]]:
    """The line of each place, the changed source, and what the plain device runs."""
    kernels = re.search(r"__kernel|^kernel ", source)
    begin = kernels.start() if kernels else 0
    dead = [each.span() for each in _DEAD.finditer(source)]
    for site in re.finditer(change.pattern, source):
        at = site.end() - 1
        if at < begin or any(low <= at < high for low, high in dead):
            continue
        made = [
            source[: site.start()] + site.expand(instead) + source[site.end() :]
            for instead in (change.instead, change.probe or change.instead)
        ]
        yield source.count("\n", 0, at) + 1, made[0], made[1]
