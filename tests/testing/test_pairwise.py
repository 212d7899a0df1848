"""The cases that `make test` runs of a test function, for products that are known."""

from itertools import combinations, product

import pytest
from pairwise import covering, one_in

SIZES = {"dtype": 4, "shape": 5, "layout": 3, "policy": 2}


def cases(**sizes: int) -> dict[str, dict[str, int]]:
    values = product(*map(range, sizes.values()))
    return {str(each): dict(zip(sizes, each, strict=True)) for each in values}


def together(found: list[dict[str, int]], count: int) -> set[object]:
    return {each for case in found for each in combinations(case.items(), count)}


@pytest.mark.parametrize(("count", "most"), [(1, 5), (2, 25), (3, 75)])
def test_all_values_occur_together_in_few_cases(count: int, most: int) -> None:
    whole = cases(**SIZES)
    chosen = covering(whole, count)
    found = [whole[name] for name in chosen]
    assert together(found, count) == together(list(whole.values()), count)
    assert len(found) <= most < len(whole)
    assert covering(dict(reversed(whole.items())), count) == chosen


def test_two_parameters_are_a_product() -> None:
    whole = cases(dtype=3, shape=4)
    assert covering(whole) == set(whole)


def test_what_changes_together_is_one_parameter() -> None:
    whole = cases(dtype=3, shape=4, one=1)
    for case in whole.values():
        case["bound"] = 2 - case["dtype"]
    assert covering(whole) == set(whole)


def test_one_in_three() -> None:
    whole = cases(dtype=3, shape=4)
    assert len(one_in(3, whole)) == 4
    assert one_in(1, whole) == set(whole)
