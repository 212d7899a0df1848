"""The pairs to check, from made-up entries."""

import torch

from xpurt_tools.conformance.databases import Entry
from xpurt_tools.conformance.pairs import DTYPES, Pair, left_out, pairs
from xpurt_tools.conformance.spread import spread

ALL = frozenset(getattr(torch, dtype) for dtype in DTYPES)
FLOATS = frozenset({torch.float32, torch.float64})
ENTRIES = [
    Entry("op", "add", "pointwise", None, ALL),
    Entry("op", "linalg.svd", "linalg", None, FLOATS),
    Entry("op", "jiterator", "other", None, frozenset()),
]


def test_every_dtype_of_every_op_is_a_pair() -> None:
    found = pairs(ENTRIES)
    assert [pair.dtype for pair in found if pair.name == "add"] == list(DTYPES)
    assert found[-2:] == [
        Pair("linalg.svd", "float32", "linalg"),
        Pair("linalg.svd", "float64", "linalg"),
    ]
    assert len(found) + left_out(ENTRIES) == len(ENTRIES) * len(DTYPES)


def test_patterns_and_dtypes_choose() -> None:
    chosen = pairs(ENTRIES, ("float32",), ("linalg.*", "jit*"))
    assert chosen == [Pair("linalg.svd", "float32", "linalg")]
    assert left_out(ENTRIES, ("float32",), ("linalg.*", "jit*")) == 1


def test_a_sample_has_every_op_and_is_always_the_same() -> None:
    sample = pairs(ENTRIES, sample=4)
    assert sample == pairs(ENTRIES, sample=4)
    assert [pair.name for pair in sample].count("add") in (2, 3)
    assert [pair.name for pair in sample].count("linalg.svd") == 1
    assert len(pairs(ENTRIES, sample=100)) == 2


def test_a_sample_of_many_ops_meets_every_dtype() -> None:
    many = [Entry("op", f"op{number}", "", None, ALL) for number in range(200)]
    met = {pair.dtype for pair in pairs(many, sample=len(DTYPES))}
    assert met == set(DTYPES)


def test_a_part_of_the_samples_comes_from_all_over_them() -> None:
    assert list(spread("abc", None)) == [(0, "a"), (1, "b"), (2, "c")]
    assert list(spread("abc", 5)) == [(0, "a"), (1, "b"), (2, "c")]
    assert list(spread(range(10, 20), 3)) == [(0, 10), (3, 13), (6, 16)]
