"""Writes results between the markers of a Markdown file, and keeps the rest."""

from collections.abc import Sequence
from pathlib import Path

from xpurt.reports import Machine
from xpurt.text.markdown_section import Section, head_of, line_of
from xpurt_tools.bench.limits import Limits
from xpurt_tools.bench.report import (
    TARGET_HEADINGS,
    cells,
    headings,
    limits_sentence,
    target_cells,
    verdicts,
)
from xpurt_tools.bench.results import SuiteResult

# Sections that belong to no suite.
MACHINE = "machine"
TARGETS = "targets"


def section(name: str) -> Section:
    return Section(
        f"<!-- bench {name}: begin, written by the command -->",
        f"<!-- bench {name}: end -->",
    )


def update(
    path: Path, results: Sequence[SuiteResult], limits: Limits, machine: Machine
) -> None:
    """Rewrites the sections of the machine and of each suite that was run, and the
    suites' lines in the table of targets.

    Creates a file that does not exist. Raises BadMarkers, and then writes nothing.
    """
    text = (
        path.read_text()
        if path.exists()
        else empty_page([r.suite.name for r in results])
    )
    text = section(MACHINE).replaced(text, machine_lines(limits, machine))
    targets = section(TARGETS)
    text = targets.replaced(text, target_lines(targets.of(text), results, machine))
    for result in results:
        lines = suite_lines(result, limits, machine)
        text = section(result.suite.name).replaced(text, lines)
    path.write_text(text)


def empty_page(names: Sequence[str]) -> str:
    """A page of empty sections."""
    sections = map(section, (MACHINE, TARGETS, *names))
    parts = [f"{each.begin}\n{each.end}\n" for each in sections]
    return "# Performance\n\n" + "\n".join(parts)


def check(text: str, names: Sequence[str]) -> None:
    """Raises BadMarkers unless `text` has the fixed sections and one for each name."""
    for name in (MACHINE, TARGETS, *names):
        section(name).of(text)


def target_lines(
    old: str, results: Sequence[SuiteResult], machine: Machine
) -> list[str]:
    """The table of targets: new lines for suites that were run completely, old ones for
    the others, in the order of the old table."""
    kept: dict[str, str] = {}
    for line in old.splitlines()[2:]:
        name = line.strip("| ").partition(" ")[0]
        if name:
            kept[name] = line
    for result in results:
        if result.whole:
            row = (*target_cells(result), machine.date)
            kept[result.suite.name] = line_of(row)
    return [*head_of((*TARGET_HEADINGS, "measured")), *kept.values()]


def machine_lines(limits: Limits, machine: Machine) -> list[str]:
    return [f"{machine.date}: {machine.sentence}.", "", limits_sentence(limits)]


def suite_lines(result: SuiteResult, limits: Limits, machine: Machine) -> list[str]:
    """The date and the limits, the table, and the verdicts."""
    lines = [
        f"{machine.date}, xpurt {machine.xpurt}; triad {limits.triad:.1f} GB/s, oneDNN "
        f"{limits.onednn_f32:,.0f} GFLOP/s in f32, {limits.onednn_bf16:,.0f} in bf16.",
        *([f"**Not to be trusted: {machine.busy}.**"] if machine.busy else []),
        "",
    ]
    if result.measured:
        lines += head_of(headings(result))
        lines += [line_of(row) for row in cells(result, limits)]
        lines.append("")
    return lines + [f"- {line}" for line in verdicts(result, limits)]
