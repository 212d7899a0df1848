"""The command from end to end: limits, suites, reports."""

import gc
import json
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from typing import Any

import xpurt
from xpurt.reports import Machine, describe_machine, write_page
from xpurt_tools.bench import markdown, page_faults, plot
from xpurt_tools.bench.calibration_loop import CalibrationLoop
from xpurt_tools.bench.limits import Limits, measure_limits
from xpurt_tools.bench.measure import Load, measure, measure_neutral
from xpurt_tools.bench.report import limits_sentence, suite_table, target_table
from xpurt_tools.bench.report_html import bench_page
from xpurt_tools.bench.request import OVER, Request, check_files, write_files
from xpurt_tools.bench.results import RowResult, SuiteResult
from xpurt_tools.bench.row import BadRequest, Row, Suite
from xpurt_tools.bench.suites import SUITES
from xpurt_tools.bench.timing import Budget

FULL = Budget(seconds=0.8, fewest=5, most=60, learning=1.0)
QUICK = Budget(seconds=0.05, fewest=3, most=9)
LIMITS = Budget(seconds=0.5, fewest=7, most=40)


def run_bench(
    request: Request,
    suites: Sequence[Suite] = SUITES,
    budget: Budget | None = None,
    limits: Limits | None = None,
    load: Load | None = None,
) -> int:
    """Prints the tables, writes the files, and returns the exit code: 0, even if rows
    failed or targets are not met; 1 if no row could be measured.

    load: of the machine; by default that of a calibration loop.

    Raises BadRequest and MissingExtra before anything is measured, and MappingError if
    the mapping finds no device.
    """
    chosen = _chosen(suites, request)
    names = [suite.name for suite in chosen]
    check_files(request, lambda page: markdown.check(page, names))
    began = time.monotonic()
    xpurt.set_xpu_mapping(request.mapping)
    machine = describe_machine()
    print(f"{machine.sentence}\n")
    if machine.busy:
        print(f"{machine.busy}\n")
    budget = budget or (QUICK if request.quick else FULL)
    limits = limits or measure_limits(LIMITS)
    print(f"{limits_sentence(limits)}\n")
    end = began + 60 * request.minutes
    results = _measured(chosen, request, budget, load or CalibrationLoop().load, end)
    for result in results:
        print(f"{suite_table(result, limits)}\n")
    print(f"{target_table(results)}\n\n{time.monotonic() - began:,.0f} s")
    _write(request, results, limits, machine)
    return 0 if any(result.measured for result in results) else 1


def _chosen(suites: Sequence[Suite], request: Request) -> list[Suite]:
    """The requested suites, in the order of the table. Raises BadRequest."""
    names = [suite.name for suite in suites]
    for name in request.suites:
        if name not in names:
            raise BadRequest(f"no suite {name!r}; there are {', '.join(names)}")
    chosen = [
        suite
        for suite in suites
        if suite.name in request.suites or not (request.suites or suite.only_by_name)
    ]
    if not any(_rows_of(suite, request) for suite in chosen):
        raise BadRequest(f"no row of these suites is called {request.rows!r}")
    return chosen


def _rows_of(suite: Suite, request: Request) -> list[Row]:
    return [
        row
        for row in suite.rows
        if fnmatchcase(row.name, request.rows) and not (request.quick and row.long)
    ]


def _measured(
    suites: Sequence[Suite], request: Request, budget: Budget, load: Load, end: float
) -> list[SuiteResult]:
    """First measures every row as in a user's program, then the rows with page faults
    again without them.

    Begins no row after `end`, by time.monotonic(). An interruption ends it; the rows
    measured so far are returned.
    """
    results: list[SuiteResult] = []
    gc.freeze()  # so that the collection around each row is short
    try:
        for suite in suites:
            results.append(SuiteResult(suite, ()))
            _report(suite.name, always=True)
            for row in _rows_of(suite, request):
                _report(f"{suite.name}: {row.name}")
                with _policy_of(suite):
                    found = (
                        measure(row, budget, load)
                        if time.monotonic() < end
                        else RowResult(row.name, error=OVER)
                    )
                results[-1] = results[-1].with_row(found)
        if page_faults.keep_out():
            for place, result in enumerate(results):
                _report(f"{result.suite.name}, without page faults", always=True)
                results[place] = _neutral(result, budget, load, end)
    except KeyboardInterrupt:
        print("\ninterrupted")
    finally:
        gc.unfreeze()
        page_faults.let_in()
        _report("")
    return results


def _neutral(
    result: SuiteResult, budget: Budget, load: Load, end: float
) -> SuiteResult:
    by_name = {row.name: row for row in result.suite.rows}
    with _policy_of(result.suite):
        rows = [
            measure_neutral(by_name[each.name], each, budget, load)
            if time.monotonic() < end
            else each
            for each in result.rows
        ]
    return replace(result, rows=tuple(rows))


def _policy_of(suite: Suite) -> AbstractContextManager[object]:
    return xpurt.kernel_policy(suite.policy) if suite.policy else nullcontext()


def _report(what: str, *, always: bool = False) -> None:
    """Prints what is measured now: on a terminal in a line that the next call
    overwrites; elsewhere in a line of its own, and only with `always`."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)
    elif always:
        print(what, file=sys.stderr, flush=True)


def _write(
    request: Request, results: list[SuiteResult], limits: Limits, machine: Machine
) -> None:
    write_files(
        [
            (
                request.json,
                lambda path: path.write_text(
                    json.dumps(as_data(results, limits, machine, request), indent=1)
                ),
            ),
            (
                request.html,
                lambda path: write_page(path, bench_page(results, limits, machine)),
            ),
            (
                request.plot,
                lambda path: plot.save_plot(path, results, machine.sentence),
            ),
            (
                request.markdown,
                lambda path: markdown.update(path, results, limits, machine),
            ),
        ]
    )


def as_data(
    results: Sequence[SuiteResult], limits: Limits, machine: Machine, request: Request
) -> dict[str, Any]:
    """All results, for JSON."""
    return {
        "machine": asdict(machine),
        "limits": asdict(limits),
        "quick": request.quick,
        "suites": [result.as_data(limits) for result in results],
    }
