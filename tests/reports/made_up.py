"""Pages of results that no device made."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench_command.made_up import FAST, LIMITS, MACHINE, results

from xpurt_tools.bench.report_html import bench_page
from xpurt_tools.bench.results import RowResult, SuiteResult
from xpurt_tools.conformance.report_html import conformance_page
from xpurt_tools.conformance.results import Result
from xpurt_tools.conformance.settings import Settings


def bench_of(folder: Path, seconds: dict[str, float]) -> Path:
    """With rows that take so long on xpu."""
    rows = tuple(replace(FAST, name=n, xpu_s=each) for n, each in seconds.items())
    return bench_page_of(folder, [replace(results(), rows=rows)])


def bench_page_of(folder: Path, found: Sequence[SuiteResult]) -> Path:
    path = folder / "bench.html"
    path.write_text(bench_page(found, LIMITS, MACHINE))
    return path


def conformance_page_of(folder: Path, found: Sequence[Result]) -> Path:
    path = folder / "conformance.html"
    path.write_text(
        conformance_page(
            found,
            Settings(),
            MACHINE,
            unknown=[r for r in found if r.counts and not r.ok],
        )
    )
    return path


def failed_row(name: str, error: str) -> RowResult:
    return RowResult(name, error=error)
