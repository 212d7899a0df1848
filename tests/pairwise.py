"""Which cases of a test function `make test` runs; `make test-rest` runs the others.

Nearly all faults show with one value of a parameter, or with two values together (Kuhn,
Wallace and Gallo, 2004). So of a product of parameters a few cases suffice, in which each
pair of values occurs. A mapping is not paired: each occurs with some values, as `CPU` and
`GPU` run the same kernels, and the others send ops to these.

Where cases take long, a mark of the function asks for fewer: `each_value`, which gives up
the pairs, or `one_in(n)`, which takes one case of n.
"""

import heapq
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

MAPPING = "xpu"

Case = Mapping[str, int]  # by parameter, which value it has


def covering(cases: Mapping[str, Case], together: int = 2) -> set[str]:
    """The names of a subset in which the same values of `together` parameters occur as
    in `cases`, and the same mappings. The choice is greedy and the same each time: the
    next case is the one with the most that did not occur yet."""
    names = in_random_order(cases)
    parameters = independent([cases[name] for name in names])
    has = {name: set(combined(cases[name], parameters, together)) for name in names}
    missing = set().union(*has.values())
    if not missing:
        return set(names)
    # A case adds less and less: a number that is out of date is too large.
    queue = [(-len(has[name]), turn, name) for turn, name in enumerate(names)]
    heapq.heapify(queue)
    chosen = set()
    while missing:
        expected, turn, name = heapq.heappop(queue)
        added = len(has[name] & missing)
        if added == -expected:
            chosen.add(name)
            missing -= has[name]
        elif added:
            heapq.heappush(queue, (-added, turn, name))
    return chosen


def combined(
    case: Case, parameters: Sequence[str], together: int
) -> Iterator[tuple[object, ...]]:
    values = [(name, case[name]) for name in parameters if name != MAPPING]
    yield from combinations(values, min(together, len(values)))
    if MAPPING in parameters:
        yield ((MAPPING, case[MAPPING]),)


def one_in(count: int, cases: Mapping[str, Case]) -> set[str]:
    return set(in_random_order(cases)[::count])


def in_random_order(names: Mapping[str, object]) -> list[str]:
    """The same each time, and nearly the same with another case."""
    return sorted(names, key=lambda name: zlib.crc32(name.encode()))


def independent(cases: Sequence[Case]) -> list[str]:
    """Parameters with several values, one of those that change together."""
    columns = {
        name: [case[name] for case in cases] for name in (cases[0] if cases else ())
    }
    kept: list[str] = []
    for name, column in columns.items():
        others = (columns[other] for other in kept)
        if len(set(column)) > 1 and not any(is_same(column, other) for other in others):
            kept.append(name)
    return kept


def is_same(a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether equal values of one come with equal values of the other."""
    return len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b))
