"""The results as one HTML page."""

from collections.abc import Iterable, Sequence

from xpurt.reports import (
    Axis,
    Cell,
    Chart,
    Column,
    DataTable,
    Figure,
    Kind,
    Machine,
    Mark,
    Panel,
    Row,
    Rule,
    Tone,
    render_page,
)
from xpurt_tools.bench.limits import Limits
from xpurt_tools.bench.report import (
    HEADINGS,
    TARGET_HEADINGS,
    cells,
    limits_sentence,
    target_cells,
    verdicts,
)
from xpurt_tools.bench.results import RowResult, SuiteResult

_TIERS = {
    "sycl": "SYCL kernel",
    "onednn": "oneDNN primitive",
    "native": "PyTorch's CPU kernel, same bytes",
    "copy": "PyTorch's CPU kernel, on copies",
    "other": "no op of xpu's",
}
_LEAST_RANGE = 2.0  # of the axis, on both sides of 1


def bench_page(results: Sequence[SuiteResult], limits: Limits, machine: Machine) -> str:
    rows = [row for result in results for row in result.rows]
    failed = sum(row.ratio is None for row in rows)
    measured = len(rows) - failed
    judged = [result.met for result in results if result.met is not None]
    over = sum(len(result.over_the_limit) for result in results)
    faster = sum(row.ratio is not None and row.ratio.value < 1 for row in rows)
    figures = (
        Figure(f"{measured:,}", "rows measured"),
        Figure(f"{faster:,}", "of them faster on xpu"),
        Figure(
            f"{sum(judged)} of {len(judged)}",
            "suites meet their target",
            _tone(all(judged)) if judged else "muted",
        ),
        Figure(f"{over:,}", "rows over their limit", _tone(not over)),
        Figure(f"{failed:,}", "rows failed", _tone(not failed)),
    )
    return render_page(
        "bench",
        f"Benchmarks, mapping {machine.mapping}",
        figures,
        machine,
        limits=limits_sentence(limits),
        ratios=_ratios(results),
        targets=_targets(results),
        verdicts=[(result.suite.name, verdicts(result, limits)) for result in results],
        rows=_rows(results, limits),
    )


def _tone(well: bool) -> Tone:
    return "good" if well else "bad"


def _ratios(results: Iterable[SuiteResult]) -> Chart:
    """A panel per suite that has a measured row."""
    shown = [result for result in results if result.measured]
    values = [value for result in shown for value in _values(result)]
    axis = Axis.around(values, "time on xpu / time on the CPU", least=_LEAST_RANGE)
    drawn = {_tier(row) for result in shown for row in result.measured}
    return Chart(
        axis,
        (*_geomeans(shown, axis), *(_panel(result, axis) for result in shown)),
        "ratio of the time on xpu to the time on the CPU, per row",
        legend=tuple((tier, text) for tier, text in _TIERS.items() if tier in drawn),
        empty="No row was measured.",
    )


def _geomeans(shown: Sequence[SuiteResult], axis: Axis) -> Iterable[Panel]:
    """One panel for all suites, with the target of each."""
    rows = []
    for result in shown:
        if result.geomean is None:
            continue
        name, target = result.suite.name, result.suite.target
        met = _tone(bool(result.met))
        told = f"{name}: {result.geomean:.2f}, at most {target:.2f}"
        marks = (
            Mark("tick", "target", axis.at(target), about=f"target: {target:.2f}"),
            Mark("dot", met, axis.at(result.geomean), about=told),
        )
        rows.append(Row(name, marks, f"{result.geomean:.2f}"))
    if len(rows) > 1:
        rule = Rule(axis.at(1.0), "one", "as fast as the CPU")
        note = "green: within the target, the small red line"
        yield Panel("geometric mean of each suite", tuple(rows), note, (rule,))


def _values(result: SuiteResult) -> Iterable[float]:
    yield result.suite.target
    for row in result.measured:
        for ratio in (row.ratio, row.neutral):
            if ratio is not None:
                yield from (ratio.value, ratio.low, ratio.high)


def _panel(result: SuiteResult, axis: Axis) -> Panel:
    target = result.suite.target
    return Panel(
        result.suite.name,
        tuple(_row(row, axis) for row in result.measured),
        note=f"geomean {result.geomean:.2f}, at most {target:.2f}",
        rules=(
            Rule(axis.at(1.0), "one", "as fast as the CPU"),
            Rule(axis.at(target), "target", f"target: {target:.2f}"),
        ),
    )


def _row(row: RowResult, axis: Axis) -> Row:
    assert row.ratio is not None
    tier = _tier(row)
    low, high = row.ratio.low, row.ratio.high
    about = f"{row.name}: {row.ratio.value:.2f} ({low:.2f} to {high:.2f}), {row.tier}"
    marks = [Mark("range", tier, axis.at(low), axis.at(high))]
    if row.neutral is not None:
        told = f"{row.name} without page faults: {row.neutral.value:.2f}"
        marks.append(Mark("ring", tier, axis.at(row.neutral.value), about=told))
    marks.append(Mark("dot", tier, axis.at(row.ratio.value), about=about))
    return Row(row.name, tuple(marks), f"{row.ratio.value:.2f}")


def _tier(row: RowResult) -> str:
    """The tier with most calls."""
    tier = row.tier.partition(" ")[0]
    return tier if tier in _TIERS else "other"


def _targets(results: Iterable[SuiteResult]) -> DataTable:
    names = ("verdict", "verdict without faults")
    columns: list[Column] = []
    for heading in TARGET_HEADINGS:
        if heading:
            columns.append(_column(heading))
        else:
            place = sum(column.kind == "choice" for column in columns)
            columns.append(Column(names[place], "choice"))
    lines = (
        [Cell(cell, tone=_verdict_tone(cell)) for cell in target_cells(result)]
        for result in results
    )
    return DataTable.of("table-targets", columns, lines, "No suite was run.")


def _column(heading: str) -> Column:
    """A column. A ">" before the heading marks numbers, as in `xpurt.text.table`."""
    kind: Kind = "number" if heading.startswith(">") else "text"
    return Column(heading.removeprefix(">"), kind)


def _verdict_tone(cell: str) -> Tone:
    return "good" if cell == "met" else "bad" if cell == "not met" else ""


def _rows(results: Iterable[SuiteResult], limits: Limits) -> DataTable:
    """Every row of every suite, failed ones included."""
    columns = [Column("suite", "choice")]
    columns += map(_column, HEADINGS)
    columns.append(Column("result", "choice"))
    lines: list[list[Cell | str]] = []
    for result in results:
        suite = result.suite.name
        over = {row.name for row in result.over_the_limit}
        for row, texts in zip(result.measured, cells(result, limits), strict=True):
            line: list[Cell | str] = [suite, *texts[: len(HEADINGS)]]
            values = row.cpu_bytes or row.cpu_s, row.xpu_bytes or row.xpu_s
            for place, value in zip((2, 3), values, strict=True):
                line[place] = Cell(texts[place - 1], value=value)
            is_over = row.name in over
            said = Cell("over its limit", tone="bad") if is_over else Cell("measured")
            lines.append([*line, said])
        for row in result.rows:
            if row.ratio is None:
                reason = Cell("failed", tone="bad", details=row.error)
                lines.append([suite, row.name, *[""] * (len(HEADINGS) - 1), reason])
    return DataTable.of("table-rows", columns, lines, "No row was tried.")
