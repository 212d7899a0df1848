"""Writes results between the markers of a Markdown file, and leaves the rest alone."""

import re
from collections.abc import Sequence
from pathlib import Path

from xpurt.bench.limits import Limits
from xpurt.bench.machine import Machine
from xpurt.bench.report import (
    TARGET_HEADINGS,
    cells,
    headings,
    limits_sentence,
    target_cells,
    verdicts,
)
from xpurt.bench.results import SuiteResult

# Sections that belong to no suite.
MACHINE = "machine"
TARGETS = "targets"


class BadMarkers(Exception):
    """The file has no place, or no single place, for what is to be written."""


def begin(name: str) -> str:
    return f"<!-- bench {name}: begin, written by the command -->"


def end(name: str) -> str:
    return f"<!-- bench {name}: end -->"


def update(
    path: Path, results: Sequence[SuiteResult], limits: Limits, machine: Machine
) -> None:
    """Rewrites the sections of the machine and of each suite that was run, and their
    lines of the targets.

    A file that does not exist is made. Raises BadMarkers, and then writes nothing.
    """
    text = (
        path.read_text()
        if path.exists()
        else empty_page([r.suite.name for r in results])
    )
    text = replaced(text, MACHINE, machine_lines(limits, machine))
    old = section(text, TARGETS)
    text = replaced(text, TARGETS, target_lines(old, results, machine))
    for result in results:
        lines = suite_lines(result, limits, machine)
        text = replaced(text, result.suite.name, lines)
    path.write_text(text)


def empty_page(names: Sequence[str]) -> str:
    """Markers and nothing between them."""
    parts = [f"{begin(name)}\n{end(name)}\n" for name in (MACHINE, TARGETS, *names)]
    return "# Performance\n\n" + "\n".join(parts)


def check(text: str, names: Sequence[str]) -> None:
    """Raises BadMarkers unless `text` has a section for each name, and the others."""
    for name in (MACHINE, TARGETS, *names):
        section(text, name)


def section(text: str, name: str) -> str:
    """What lies between the markers. Raises BadMarkers."""
    return _match(text, name)[1]


def replaced(text: str, name: str, lines: Sequence[str]) -> str:
    """The text with other lines between the markers. Raises BadMarkers."""
    match = _match(text, name)
    body = "".join(f"{line}\n" for line in lines)
    return text[: match.start(1)] + body + text[match.end(1) :]


def _match(text: str, name: str) -> re.Match[str]:
    pattern = f"{re.escape(begin(name))}\n(.*?){re.escape(end(name))}"
    found = list(re.finditer(pattern, text, flags=re.DOTALL))
    if len(found) != 1:
        raise BadMarkers(
            f"it has {len(found)} sections {name!r}, not one: a section is everything "
            f"between the lines\n{begin(name)}\n{end(name)}"
        )
    return found[0]


def target_lines(
    old: str, results: Sequence[SuiteResult], machine: Machine
) -> list[str]:
    """The table of targets: new lines for suites that were run whole, old ones for the
    others, in the order of the old table."""
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
    """When it was measured, the table, and what it says."""
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


def head_of(names: Sequence[str]) -> list[str]:
    """Headings and the rule beneath; ">" before a name sets its column to the right."""
    rule = ["---:" if name.startswith(">") else "---" for name in names]
    return [line_of([name.removeprefix(">") for name in names]), line_of(rule)]


def line_of(row: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
