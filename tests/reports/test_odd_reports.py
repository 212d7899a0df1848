"""Reports that are empty, very long, or have letters that mean something in HTML."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bench_command.made_up import FAST, suite
from headless_browser import overflow

from reports.made_up import bench_page_of, conformance_page_of, failed_row
from xpurt_tools.bench.results import SuiteResult
from xpurt_tools.conformance.report_html import rate_text
from xpurt_tools.conformance.results import Failure, Result, Tally

if TYPE_CHECKING:
    from playwright.sync_api import Page

Open = Callable[..., "Page"]

NASTY = "<img src=x onerror=\"document.title='gone'\"> & </script><b>'bold'</b> <!--"


def failed(name: str, message: str) -> Result:
    return Result(
        name,
        "float32",
        "nn",
        "failed",
        trials={"failed": 1},
        failed=1,
        failures=[Failure("call", 0, f"({name},)", message)],
    )


def test_letters_of_html_are_shown_as_they_are(open_page: Open, tmp_path: Path) -> None:
    page = open_page(
        conformance_page_of(tmp_path, [failed(NASTY, f"{NASTY}\n{NASTY}")])
    )
    row = page.locator("#table-failures tbody tr")
    row.locator("summary").click()
    texts = row.locator("td").first.inner_text(), row.locator("pre").inner_text()
    assert texts[0] == NASTY
    assert texts[1].count(NASTY) == 3
    assert NASTY in page.locator(".notice").inner_text()
    assert page.title() == "Conformance, mapping CPU · xpurt"

    rows = (failed_row(NASTY, NASTY), FAST)
    page = open_page(bench_page_of(tmp_path, [SuiteResult(suite(NASTY), rows)]))
    assert page.locator("figcaption").inner_text().startswith(NASTY)
    page.locator("#table-rows summary").click()
    assert page.locator("#table-rows pre").inner_text() == NASTY
    assert page.title() == "Benchmarks, mapping CPU · xpurt"
    assert overflow(page) == 0


def test_a_report_of_nothing(open_page: Open, tmp_path: Path) -> None:
    page = open_page(conformance_page_of(tmp_path, []))
    assert page.locator("#table-failures").inner_text() == "None."
    assert page.locator("#table-pairs").inner_text() == "No pair was run."
    assert "No pair runs on the CPU." in page.locator("#rates").inner_text()
    page = open_page(bench_page_of(tmp_path, []))
    assert "No row was measured." in page.locator("#ratios").inner_text()
    assert page.locator("#table-rows").inner_text() == "No row was tried."


def test_a_report_of_one(open_page: Open, tmp_path: Path) -> None:
    page = open_page(bench_page_of(tmp_path, [SuiteResult(suite(), (FAST,))]))
    assert page.locator("#table-rows output").inner_text() == "1 row"
    assert page.locator("svg").count() == 1


def test_no_row_could_be_measured(open_page: Open, tmp_path: Path) -> None:
    rows = (failed_row("broken", "RuntimeError: it broke"),)
    page = open_page(bench_page_of(tmp_path, [SuiteResult(suite(), rows)]))
    assert page.locator("svg").count() == 0
    assert "it broke" in page.locator("#table-rows").inner_html()


def test_one_failure_among_thousands_is_seen(open_page: Open, tmp_path: Path) -> None:
    """Long tables show their first rows; the filter finds all of them."""
    found = [Result(f"op_{i}", "float32", "nn") for i in range(4999)]
    page = open_page(conformance_page_of(tmp_path, [*found, failed("last", "no")]))
    assert page.locator(".figures strong").first.inner_text() == "99.98%"
    bar = page.locator("svg rect.bad").first.bounding_box()
    assert bar is not None
    assert bar["width"] > 3
    pairs = page.locator("#table-pairs")
    rows = pairs.locator("tbody tr:visible")
    assert rows.count() == 400
    output = pairs.locator("output")
    assert output.inner_text() == "5,000 rows; the first 400 are shown"
    pairs.get_by_role("combobox", name="status").select_option("failed")
    assert rows.all_inner_texts() == ["last\tfloat32\tnn\tfailed\t-\t1\t-\t0.00"]
    assert output.inner_text() == "1 of 5,000 rows"
    pairs.get_by_role("combobox", name="status").select_option("")
    pairs.get_by_role("button", name="show all").click()
    assert rows.count() == 5000
    assert output.inner_text() == "5,000 rows"


def test_a_rate_is_not_rounded_up() -> None:
    assert rate_text(Tally(pairs=30_000, passed=30_000)) == "100.00%"
    assert rate_text(Tally(pairs=30_000, passed=29_999)) == "99.99%"
    assert rate_text(Tally()) == "100.00%"
