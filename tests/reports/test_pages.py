"""The pages of the commands in a real browser."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from headless_browser import overflow

from reports.made_up import bench_of

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

KINDS = ("conformance", "bench", "calibrate")
Open = Callable[..., "Page"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_whole_in_itself(
    kind: str, reports: dict[str, Path], open_page: Open
) -> None:
    """`open_page` fails on errors on the console; a file may request no other."""
    page = open_page(reports[kind])
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0
    assert overflow(page) == 0


@pytest.mark.rest
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_fits_a_phone(
    kind: str, reports: dict[str, Path], open_page: Open
) -> None:
    page = open_page(reports[kind], width=390, height=844)
    assert overflow(page) == 0
    for plot in page.locator("svg").all():
        assert size(plot)[0] > 90


@pytest.mark.parametrize("kind", KINDS)
def test_the_plot_is_seen(kind: str, reports: dict[str, Path], open_page: Open) -> None:
    page = open_page(reports[kind])
    plots = page.locator("svg").all()
    assert plots
    for plot in plots:
        width, height = size(plot)
        assert width > 200
        assert height > 50
        left, right, *sizes = plot.evaluate(BOUNDS)
        assert sizes, "marks"
        assert min(sizes) > 0
        # A dot at the end of the axis reaches over it.
        assert left > -8
        assert right < width + 8


# Of the marks of a plot: how far they reach, from its left side on, and their sizes.
BOUNDS = """plot => {
    const boxes = [...plot.querySelectorAll("rect, circle")].map(
        mark => mark.getBoundingClientRect());
    const left = plot.getBoundingClientRect().left;
    return [
        Math.min(...boxes.map(box => box.left - left)),
        Math.max(...boxes.map(box => box.right - left)),
        ...boxes.flatMap(box => [box.width, box.height]),
    ];
}"""


def size(shape: "Locator") -> tuple[float, float]:
    box = shape.bounding_box()
    assert box is not None
    return box["width"], box["height"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_names_machine_versions_date_and_command(
    kind: str, reports: dict[str, Path], open_page: Open
) -> None:
    page = open_page(reports[kind])
    told = page.locator("#machine").inner_text()
    for name in ("PyTorch", "xpurt", "dpctl", "oneDNN", "Python", "Devices, drivers"):
        value = page.locator(f"#machine dt:text-is('{name}') + dd").inner_text()
        assert value, name
        assert value != "not installed", name
    assert "driver " in told
    assert " UTC" in page.locator("header time").inner_text()
    command = page.locator("header code").inner_text()
    for word in sys.orig_argv[1:]:
        assert word in command


def test_a_click_on_a_heading_sorts(reports: dict[str, Path], open_page: Open) -> None:
    page = open_page(reports["calibrate"])
    heading = page.get_by_role("columnheader", name="kernel from").first
    found = []
    for order in ("ascending", "descending"):
        heading.get_by_role("button").click()
        assert heading.get_attribute("aria-sort") == order
        found.append(column(page, 4))
    up, down = found
    numbers = [each for each in up if each != "never"]
    assert 1 < len(numbers) < len(up), "classes with and without a crossover"
    assert numbers == sorted(numbers, key=number)
    assert up[: len(numbers)] == numbers, "what is no number comes last"
    assert down[: len(numbers)] == sorted(numbers, key=number, reverse=True)
    assert down[len(numbers) :] == up[len(numbers) :]

    page.get_by_role("columnheader", name="class").first.get_by_role("button").click()
    names = column(page, 1)
    assert names == sorted(names, key=natural)
    assert names.index("log1p") < names.index("log10")


def column(page: "Page", place: int) -> list[str]:
    """The visible cells of a column of the page's first table, from 1."""
    cells = page.locator("table").first.locator(f"tr:visible td:nth-child({place})")
    return cells.all_inner_texts()


def natural(text: str) -> list[object]:
    """Numbers in a text by their value."""
    parts = re.split(r"(\d+)", text.replace("_", " "))
    return [int(part) if part.isdigit() else part for part in parts]


def number(text: str) -> float:
    return float(text.replace(",", ""))


@pytest.mark.rest
def test_numbers_with_units_are_sorted_by_what_they_measure(
    open_page: Open, tmp_path: Path
) -> None:
    seconds = {"slow": 2.0, "medium": 3e-3, "quick": 40e-6}
    page = open_page(bench_of(tmp_path, seconds))
    rows = page.locator("#table-rows")
    rows.get_by_role("columnheader", name="xpu").get_by_role("button").click()
    assert rows.locator("tbody td:nth-child(2)").all_inner_texts() == [
        "quick",
        "medium",
        "slow",
    ]


def test_the_filter_hides_rows_and_counts(
    reports: dict[str, Path], open_page: Open
) -> None:
    page = open_page(reports["conformance"])
    pairs = page.locator("#table-pairs")
    count = pairs.locator("output")
    assert count.inner_text() == "4 rows"
    pairs.get_by_role("searchbox").fill("WRONG int64")
    assert visible(pairs) == 1
    assert count.inner_text() == "1 of 4 rows"
    pairs.get_by_role("searchbox").fill("nothing is called so")
    assert visible(pairs) == 0
    assert count.inner_text() == "0 of 4 rows"
    pairs.get_by_role("searchbox").fill("")
    pairs.get_by_role("combobox", name="status").select_option("passed")
    assert visible(pairs) == 2
    pairs.get_by_role("combobox", name="dtype").select_option("int64")
    assert visible(pairs) == 1
    assert pairs.locator("tbody tr:visible").inner_text().startswith("right")


def visible(table: "Locator") -> int:
    return int(table.locator("tbody tr:visible").count())


@pytest.mark.rest
def test_the_filter_stays_when_the_order_changes(
    reports: dict[str, Path], open_page: Open
) -> None:
    page = open_page(reports["conformance"])
    pairs = page.locator("#table-pairs")
    pairs.get_by_role("searchbox").fill("wrong")
    pairs.get_by_role("columnheader", name="dtype").get_by_role("button").click()
    assert pairs.locator("tbody tr:visible td:nth-child(2)").all_inner_texts() == [
        "float32",
        "int64",
    ]


def test_a_failure_is_unfolded(reports: dict[str, Path], open_page: Open) -> None:
    failures = open_page(reports["conformance"]).locator("#table-failures")
    sample = failures.get_by_text("(float32[3x4], (), {})").first
    assert not sample.is_visible()
    failures.locator("summary").first.click()
    assert sample.is_visible()


@pytest.mark.rest
def test_dark_is_dark(reports: dict[str, Path], open_page: Open) -> None:
    def brightness(scheme: str) -> int:
        page = open_page(reports["bench"], color_scheme=scheme)
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, color.removeprefix("rgb(").removesuffix(")").split(",")))

    assert brightness("dark") < 150 < 600 < brightness("light")
