"""Which sizes a calibration measures, and how often: on costs that the tests make up."""

import math
import random
from collections.abc import Callable

import pytest

from xpurt.calibration.search import LONGEST_US, MAX_ROUNDS, ROUNDS, Search

SIZES, STEP = 6, 2

# Microseconds, native and by a kernel, of the size at a position.
Costs = Callable[[int], tuple[float, float]]


def crossing(at: float, steepness: float = 1.5) -> Costs:
    """The kernel is faster from the position `at` on."""

    def costs(place: int) -> tuple[float, float]:
        kernel = 5.0 * 1.5**place
        return kernel * steepness ** (place - at), kernel

    return costs


def searched(costs: Costs, sizes: int = SIZES) -> tuple[Search, dict[int, int]]:
    """The search at its end, and the number of rounds of each position."""
    search = Search(sizes, STEP)
    rounds: dict[int, int] = {}
    while wanted := search.wanted():
        assert len(set(wanted)) == len(wanted)
        for place in wanted:
            assert 0 <= place < sizes
            rounds[place] = rounds.get(place, 0) + 1
            search.note(place, *costs(place))
    return search, rounds


def chosen(search: Search, place: int) -> bool:
    """Whether the kernel is taken there: between points by a straight line in
    logarithms."""
    points = [(p, math.log(native / kernel)) for p, native, kernel in search.best()]
    below = max((point for point in points if point[0] <= place), default=points[0])
    above = min((point for point in points if point[0] >= place), default=points[-1])
    share = (place - below[0]) / max(above[0] - below[0], 1)
    return below[1] * (1 - share) + above[1] * share > 0


@pytest.mark.parametrize("at", [0.5, 1.5, 2.5, 3.5, 4.5])
@pytest.mark.parametrize("steepness", [1.2, 3.0, 10.0])
def test_the_crossover_is_found(at: float, steepness: float) -> None:
    search, _ = searched(crossing(at, steepness))
    assert [chosen(search, place) for place in range(SIZES)] == [
        place > at for place in range(SIZES)
    ]


@pytest.mark.parametrize("at", [-10, 20])
def test_where_the_choice_is_clear_little_is_measured(at: int) -> None:
    _, rounds = searched(crossing(at))
    assert rounds == {0: ROUNDS, 2: ROUNDS, 5: ROUNDS}


def test_only_sizes_around_the_crossover_are_looked_at_again() -> None:
    _, rounds = searched(crossing(3.5, 4.0))
    assert rounds[0] == rounds[2] == ROUNDS
    assert rounds[3] > ROUNDS  # the tiers are close
    assert 1 not in rounds


def test_close_tiers_have_all_sizes_and_most_rounds() -> None:
    _, rounds = searched(lambda place: (1.1 * 2**place, 2.0**place))
    assert rounds == dict.fromkeys(range(SIZES), MAX_ROUNDS)


def test_a_disturbed_round_is_taken_again() -> None:
    disturbed = [True]

    def costs(place: int) -> tuple[float, float]:
        native, kernel = crossing(20)(place)
        if place == 2 and disturbed:
            disturbed.pop()
            native *= 10_000
        return native, kernel

    search, rounds = searched(costs)
    assert rounds[2] > ROUNDS
    assert not any(chosen(search, place) for place in range(SIZES))


def test_times_that_shrink_with_size_are_not_believed() -> None:
    """Both rounds of the smallest size were disturbed, so they agree."""
    left = [10_000.0] * ROUNDS

    def costs(place: int) -> tuple[float, float]:
        native, kernel = crossing(20)(place)
        return native * (left.pop() if place == 0 and left else 1), kernel

    search, rounds = searched(costs)
    assert rounds[0] > ROUNDS
    assert not chosen(search, 0)


def test_a_time_is_at_most_that_of_more_elements() -> None:
    search = Search(3, STEP)
    for place, (native, kernel) in enumerate(((50, 8), (3, 60), (4, 20))):
        search.note(place, native, kernel)
    assert search.best() == [(0, 3, 8), (1, 3, 20), (2, 4, 20)]


@pytest.mark.parametrize(
    ("at_once_us", "last"), [(1.0, 5), (LONGEST_US / 20, 4), (2 * LONGEST_US, 2)]
)
def test_it_ends_where_calls_get_long(at_once_us: float, last: int) -> None:
    """`at_once_us`: the middle size; four times as many elements take as much longer."""
    search, _ = searched(
        lambda place: (at_once_us * 4.0 ** (place - 2), at_once_us * 4.0**place)
    )
    assert max(place for place, _, _ in search.best()) == last


@pytest.mark.parametrize("sizes", [1, 2, 3, 9])
def test_any_number_of_sizes(sizes: int) -> None:
    search, rounds = searched(lambda place: (1.0 + place, 4.0), sizes)
    assert [place for place, _, _ in search.best()] == sorted(rounds)
    assert {0, sizes - 1} <= rounds.keys()


def test_noise_costs_little() -> None:
    """Times that are often up to a half longer, and now and then a hundredfold."""
    chance = random.Random(1)

    def noise() -> float:
        return 100 if chance.random() < 0.05 else 1 + 0.5 * chance.random() ** 2

    def disturbed(costs: Costs) -> Costs:
        def those(place: int) -> tuple[float, float]:
            native, kernel = costs(place)
            return native * noise(), kernel * noise()

        return those

    losses = []
    for number in range(200):
        costs = crossing(number % 50 / 8)
        search, _ = searched(disturbed(costs))
        for place in range(SIZES):
            both = costs(place)
            losses.append(both[chosen(search, place)] / min(both) - 1)
    assert sum(losses) / len(losses) < 0.01
