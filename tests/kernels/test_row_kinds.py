"""Kinds of rows: each has keys of its own, and C++ takes these and no others."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from xpurt import _C
from xpurt.kernels.rows.table import ROWS, AnyRow, described

EVERY_KIND = {"index", "kind", "name", "dtypes", "flops", "cost_class", "overloads"}
OF_A_KIND = {row.template: row for row in ROWS}  # the last row of each
by_kind = pytest.mark.parametrize("row", OF_A_KIND.values(), ids=OF_A_KIND)

Description = dict[str, Any]


def add(change: Callable[[Description], object], row: AnyRow) -> None:
    description = described(ROWS.index(row), row)
    change(description)
    _C.add_rows([description])


def test_rows_of_different_kinds_share_what_every_row_has() -> None:
    keys = [set(described(0, row)) for row in OF_A_KIND.values()]
    assert set.intersection(*keys) == EVERY_KIND
    assert len({frozenset(each) for each in keys}) > 4


@by_kind
def test_a_key_that_the_kind_does_not_know_is_refused(
    row: AnyRow, xpu: torch.device
) -> None:
    with pytest.raises(ValueError, match=f"the row {row.aten} has keys .*: colour"):
        add(lambda given: given.update(colour="red"), row)


@by_kind
def test_a_key_of_the_kind_that_is_missing_is_named(
    row: AnyRow, xpu: torch.device
) -> None:
    for key in described(0, row):
        owner = "a row without a name" if key == "name" else f"the row {row.aten}"
        with pytest.raises(ValueError, match=f'{owner} lacks the key "{key}"'):
            add(lambda given, key=key: given.pop(key), row)


def test_a_key_inside_a_step_is_checked_too(xpu: torch.device) -> None:
    row = OF_A_KIND["custom_kernel"]
    with pytest.raises(ValueError, match=r'"steps" of the row .* lacks the key "over"'):
        add(lambda given: given["steps"][0].pop("over"), row)
    with pytest.raises(ValueError, match=r'"steps" of the row .* has keys .*: colour'):
        add(lambda given: given["steps"][0].update(colour="red"), row)


@pytest.mark.parametrize(
    ("key", "value", "found", "wanted"),
    [
        ("flops", "many", "a str", "a float"),
        ("uses", 1.5, "a float", "an int"),
        ("same_type", 1, "an int", "a bool"),
        ("params", [1], "a list of int", "a list of str"),
        ("params", {}, "dict", "lists of one type"),
        ("params", ["alpha", 1], "a list", "none of str, int or dict alone"),
    ],
)
def test_a_value_of_another_type_is_refused(
    key: str, value: object, found: str, wanted: str, xpu: torch.device
) -> None:
    with pytest.raises(
        TypeError, match=f'"{key}" of the row .* is .*{found}.*{wanted}'
    ):
        add(lambda given: given.update({key: value}), OF_A_KIND["pointwise"])


def test_a_kind_that_nobody_registered_is_named(xpu: torch.device) -> None:
    with pytest.raises(ValueError, match='no kind of rows is called "sculpture"'):
        add(lambda given: given.update(kind="sculpture"), ROWS[0])


def test_a_table_that_is_refused_changes_no_row(xpu: torch.device) -> None:
    before = sorted(_C.bound_overloads())
    good = described(0, ROWS[0])
    with pytest.raises(ValueError, match="colour"):
        _C.add_rows([good, {**described(1, ROWS[1]), "colour": "red"}])
    assert sorted(_C.bound_overloads()) == before
