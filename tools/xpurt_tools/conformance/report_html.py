"""The result of a run as one HTML page."""

from collections.abc import Iterable, Mapping, Sequence

from xpurt.reports import (
    Axis,
    Cell,
    Chart,
    Column,
    DataTable,
    Figure,
    Machine,
    Mark,
    Panel,
    Row,
    Tone,
    render_page,
)
from xpurt_tools.conformance.known import Known
from xpurt_tools.conformance.report import HEADINGS, headline, rows, verdict
from xpurt_tools.conformance.results import Failure, Result, Tally, tallies, tally
from xpurt_tools.conformance.settings import Settings
from xpurt_tools.conformance.tiers import TIERS

# Of the axis: so that a single failure among thousands of pairs is visible.
_LEAST_SHOWN = 1.5


def conformance_page(
    results: Sequence[Result],
    settings: Settings,
    machine: Machine,
    *,
    left_out: int = 0,
    known: Sequence[Known] = (),
    unknown: Sequence[Result] = (),
    stale: Sequence[Known] = (),
) -> str:
    """The page.

    left_out: pairs that PyTorch does not list for the CPU. known: the entries for this
    run's label. unknown: the failures that no entry covers. stale: entries whose pairs
    all pass.
    """
    total = tally(results)
    bad = [result for result in results if result.counts and not result.ok]
    figures = (
        Figure(rate_text(total), "of the pairs are right on xpu", _tone(not bad)),
        Figure(f"{total.pairs:,}", "pairs that run on the CPU"),
        Figure(f"{len(bad):,}", "failures", _tone(not bad)),
        Figure(f"{len(unknown):,}", "of them not known", _tone(not unknown)),
        Figure(f"{total.kernel_share:.1%}", "took SYCL or oneDNN"),
        Figure(
            f"{total.not_on_cpu + total.refused + left_out:,}",
            "pairs not counted",
            "muted",
        ),
    )
    return render_page(
        "conformance",
        f"Conformance, mapping {settings.label}",
        figures,
        machine,
        headline=headline(results, settings.label, left_out),
        verdict=verdict(unknown, stale),
        rates=_rates(results),
        failures=_failures(bad, known),
        sums=_sums(results, total),
        pairs=_pairs(results),
        settings=_settings(settings),
    )


def _tone(well: bool) -> Tone:
    return "good" if well else "bad"


def _settings(settings: Settings) -> list[tuple[str, str]]:
    return [
        ("Virtual GPU", settings.virtual_gpu),
        ("Ops", ", ".join(settings.ops)),
        ("Dtypes", ", ".join(settings.dtypes) or "all"),
        ("Types of GPUs", settings.gpu_types),
        ("Sample", "all pairs" if settings.sample == 1 else f"1 of {settings.sample}"),
        ("Samples per pair", str(settings.samples_per_pair or "all")),
    ]


def _rates(results: Sequence[Result]) -> Chart:
    by_tier = {
        tier: tally(result for result in results if result.tiers.get(tier))
        for tier in TIERS
    }
    parts: tuple[tuple[str, Mapping[str, Tally]], ...] = (
        ("by category", tallies(results, "category")),
        ("by dtype", tallies(results, "dtype")),
        ("by tier that was taken", by_tier),
    )
    axis = Axis(0.0, 1.0, "of the pairs that run on the CPU", tick_text="{:.0%}".format)
    panels = (
        Panel(
            title,
            tuple(_rate_row(n, each) for n, each in named.items() if each.pairs),
        )
        for title, named in parts
    )
    return Chart(
        axis,
        tuple(panel for panel in panels if panel.rows),
        "share of pairs that are right on xpu",
        legend=(("good", "right on xpu"), ("bad", "not right")),
        empty="No pair runs on the CPU.",
    )


def _rate_row(name: str, each: Tally) -> Row:
    wrong = each.pairs - each.passed
    about = f"{name}: {each.passed:,} of {each.pairs:,} right, {wrong:,} not"
    end = 100.0 * each.rate
    if wrong:
        end = min(end, 100.0 - _LEAST_SHOWN)
    marks = [Mark("bar", "good", 0.0, end, about)] if each.passed else []
    if wrong:
        marks.append(Mark("bar", "bad", end if each.passed else 0.0, 100.0, about))
    return Row(name, tuple(marks), f"{rate_text(each)} of {each.pairs:,}")


def rate_text(each: Tally) -> str:
    """The rate as text; less than 100% if there is a failure, in spite of rounding."""
    most = 1.0 if each.passed == each.pairs else 0.9999
    return f"{min(each.rate, most):.2%}"


def _failures(bad: Iterable[Result], known: Sequence[Known]) -> DataTable:
    columns = (
        Column("op"),
        Column("dtype", "choice"),
        Column("category", "choice"),
        Column("status", "choice"),
        Column("known", "choice"),
        Column("comparisons", "number"),
        Column("failed", "number"),
        Column("first failure"),
    )
    lines: list[tuple[Cell | str, ...]] = []
    for result in bad:
        reasons = [entry.reason for entry in known if entry.covers(result)]
        failures = result.failures
        first = failures[0].message.splitlines()[:1] if failures else []
        details = "\n\n".join(
            [*map(_told, failures), *(f"Known: {r}" for r in reasons)]
        )
        lines.append(
            (
                result.name,
                result.dtype,
                result.category,
                Cell(result.status, tone="bad"),
                Cell("yes" if reasons else "no", tone="muted" if reasons else "bad"),
                Cell(str(sum(result.trials.values()))),
                Cell(str(result.failed)),
                Cell((first or ["-"])[0], details=details),
            )
        )
    return DataTable.of("table-failures", columns, lines, "None.")


def _told(failure: Failure) -> str:
    where = failure.variant
    if failure.index >= 0:
        where += f", sample {failure.index}: {failure.sample}"
    return f"{where}\n{failure.message}"


def _sums(results: Sequence[Result], total: Tally) -> DataTable:
    columns = (
        Column("by", "choice"),
        Column("name"),
        *(Column(name.removeprefix(">"), "number") for name in HEADINGS[1:]),
    )
    lines = [
        (by, *row)
        for by, named in (
            ("category", tallies(results, "category")),
            ("dtype", tallies(results, "dtype")),
            ("all", {"all": total}),
        )
        for row in rows(named)
    ]
    return DataTable.of("table-sums", columns, lines)


def _pairs(results: Iterable[Result]) -> DataTable:
    columns = (
        Column("op"),
        Column("dtype", "choice"),
        Column("category", "choice"),
        Column("status", "choice"),
        Column("compared", "choice"),
        Column("comparisons", "number"),
        Column("tiers", "choice"),
        Column("seconds", "number"),
    )
    lines = (
        (
            result.name,
            result.dtype,
            result.category,
            Cell(result.status, tone=_status_tone(result)),
            result.compared,
            Cell(str(sum(result.trials.values()))),
            ", ".join(tier for tier in TIERS if result.tiers.get(tier)) or "-",
            Cell(f"{result.seconds:.2f}"),
        )
        for result in results
    )
    return DataTable.of("table-pairs", columns, lines, "No pair was run.")


def _status_tone(result: Result) -> Tone:
    return "muted" if not result.counts else "good" if result.ok else "bad"
