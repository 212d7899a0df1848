"""Axes, marks and tables of pages, without a browser."""

import pytest

from xpurt.calibration.report_html import stretches
from xpurt.kernels import Curve, Point
from xpurt.reports import Axis, Column, DataTable


def test_a_logarithmic_axis_has_the_same_room_for_each_factor() -> None:
    axis = Axis(0.01, 100.0, "ratio", log=True)
    assert [axis.at(v) for v in (0.01, 0.1, 1, 10, 100)] == [0, 25, 50, 75, 100]
    assert axis.at(0.0) == axis.at(1e-9) == 0
    assert axis.at(1e9) == 100


def test_an_axis_of_ratios_has_room_for_all_of_them_and_for_one() -> None:
    few = Axis.around([0.9, 1.1], "ratio", least=2.0)
    assert 0 < few.at(0.5) < 5
    assert few.at(1.0) == 50
    wide = Axis.around([0.001, 4.0, float("inf")], "ratio", least=2.0)
    assert 0 < wide.at(0.001) < wide.at(1.0) < wide.at(4.0) < 100


@pytest.mark.parametrize(
    ("axis", "labels", "major"),
    [
        (Axis(0, 1, "", tick_text="{:.0%}".format), "0% 25% 50% 75% 100%", "0% 50% 100%"),
        (Axis(0.4, 2.5, "", log=True), "0.5 1 2", "1"),
        (Axis(0.09, 11, "", log=True), "0.1 0.2 0.5 1 2 5 10", "0.1 1 10"),
        (Axis(0.5, 2e4, "", log=True), "1 10 100 1000 10000", "1 100 10000"),
    ],
)  # fmt: skip
def test_ticks_are_round_numbers(axis: Axis, labels: str, major: str) -> None:
    ticks = axis.ticks()
    assert [tick.label for tick in ticks] == labels.split()
    assert [tick.label for tick in ticks if tick.major] == major.split()
    assert [tick.position for tick in ticks] == sorted(t.position for t in ticks)


def test_many_decades_have_few_ticks() -> None:
    ticks = Axis(1, 1e24, "", log=True).ticks()
    assert 3 <= len(ticks) <= 12


def curve(*points: tuple[float, float, float]) -> Curve:
    return Curve("cheap", "f", "alike", tuple(Point(*each) for each in points))


def test_stretches_end_where_the_tiers_are_equal() -> None:
    # Twice as slow at 1, twice as fast at 10_000: equal in the middle, at 100.
    crossing = curve((1, 1.0, 2.0), (1e4, 4.0, 2.0), (1e6, 8.0, 2.0))
    (slower, slow), (faster, fast) = stretches(crossing)
    assert (slow, fast) == (False, True)
    assert slower == (1, pytest.approx(100))
    assert faster == (pytest.approx(100), 1e6)
    assert crossing.crossover() == pytest.approx(100)


def test_stretches_of_one_tier_and_of_one_point() -> None:
    assert stretches(curve((1, 1.0, 2.0), (100, 1.0, 3.0))) == [((1, 100), False)]
    assert stretches(curve((10, 2.0, 1.0))) == [((10, 13.0), True)]


def test_tiers_that_are_equal_somewhere() -> None:
    found = stretches(curve((1, 1.0, 1.0), (10, 2.0, 1.0), (100, 1.0, 1.0)))
    assert [kernel for _, kernel in found][-2:] == [True, False]
    assert all(start < end for (start, end), _ in found)


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="of 2 columns got 1 cells"):
        DataTable.of("name", [Column("a"), Column("b")], [["only one"]])
