"""The results of the suite `auto`: as a table, a section of a page, a picture, JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from xpurt.reports import Machine
from xpurt.text.markdown_section import head_of, line_of
from xpurt.text.table import table
from xpurt_tools.bench import markdown, plot
from xpurt_tools.bench.auto.measured import Measured, group_sentences

HEADINGS = (
    "case",
    ">CPU ms",
    ">GPU ms",
    ">AUTO ms",
    ">value",
    ">quartiles",
    ">at most",
    ">load",
    "verdict",
)
SECTION = markdown.section("auto")
ABOUT = (
    "The value is AUTO's time divided by that of the best device alone, or by that of "
    "all devices without any loss (chains and single ops that all devices compute), or "
    "the nanoseconds that AUTO adds to an op. It is the median of rounds in which the "
    "mappings took turns. The load is the time of a calibration loop on all cores "
    "divided by its least."
)


def cells(each: Measured) -> tuple[str, ...]:
    def ms(mapping: str) -> str:
        seconds = each.seconds.get(mapping)
        return f"{seconds * 1e3:.3f}" if seconds is not None else ""

    digits = 0 if each.case.limit.added_ns else 3
    low, high = each.quartiles
    return (
        each.case.name,
        ms("CPU"),
        ms("GPU"),
        ms(each.case.auto),
        f"{each.value:.{digits}f}",
        f"{low:.{digits}f} to {high:.{digits}f}",
        f"{each.case.limit.most:.{digits}f}",
        f"{each.load:.2f}",
        each.verdict
        + (f", efficiency {each.efficiency:.2f}" if each.efficiency else ""),
    )


def as_table(found: Sequence[Measured]) -> str:
    return table(HEADINGS, map(cells, found))


def sentences(found: Sequence[Measured], memory_gain: float) -> list[str]:
    """What follows the table."""
    return [
        *group_sentences(found),
        f"memory: all cores together reach {memory_gain:.2f} times the rate of one",
    ]


def as_data(
    found: Sequence[Measured], machine: Machine, memory_gain: float, quick: bool
) -> dict[str, Any]:
    """For JSON."""
    return {
        "machine": asdict(machine),
        "memory_gain": memory_gain,
        "quick": quick,
        "cases": [each.as_data() for each in found],
        "groups": list(group_sentences(found)),
    }


def page_lines(
    found: Sequence[Measured], machine: Machine, memory_gain: float
) -> list[str]:
    return [
        f"`python -m xpurt bench --suite auto`, {machine.date}: {machine.sentence}.",
        "",
        ABOUT,
        "",
        *head_of(HEADINGS),
        *(line_of(cells(each)) for each in found),
        "",
        *(f"- {line}" for line in sentences(found, memory_gain)),
    ]


def write_page(
    path: Path, found: Sequence[Measured], machine: Machine, memory_gain: float
) -> None:
    """Rewrites the section of the suite; creates a page that does not exist."""
    text = (
        path.read_text()
        if path.exists()
        else f"# AUTO, measured\n\n{SECTION.begin}\n{SECTION.end}\n"
    )
    path.write_text(SECTION.replaced(text, page_lines(found, machine, memory_gain)))


def save_plot(path: Path, found: Sequence[Measured], title: str) -> None:
    """A dot per case on a scale of value / limit: left of 1 the limit is met. The line
    shows the quartiles. Hollow dots were measured on a busy machine."""
    figure = plot.figures().Figure(
        figsize=(9, 0.22 * len(found) + 1.5), layout="constrained"
    )
    figure.suptitle(title, fontsize=7, wrap=True)
    axes = figure.subplots()
    for place, each in enumerate(found):
        most = each.case.limit.most
        low, high = (value / most for value in each.quartiles)
        axes.plot([low, high], [place, place], color="#2a6fbb", linewidth=1)
        axes.scatter(
            [each.value / most],
            [place],
            s=16,
            edgecolors="#2a6fbb",
            facecolors="#2a6fbb" if each.is_judged else "none",
        )
    axes.axvline(1, color="#c8553d", linestyle="--", linewidth=0.8)
    axes.set_yticks(range(len(found)), [each.case.name for each in found], fontsize=7)
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_xlabel("measured / limit", fontsize=8)
    axes.grid(alpha=0.3, axis="x")
    figure.savefig(path, dpi=100)
