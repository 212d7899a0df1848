"""The picture: a panel per suite, a dot per row, on a scale of ratios."""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from xpurt.startup.extras import needs
from xpurt_tools.bench.results import RowResult, SuiteResult

TIER_COLORS = {
    "sycl": "#2a6fbb",
    "onednn": "#4fb286",
    "native": "#e0a030",
    "copy": "#c8553d",
}
OTHER_COLOR = "#888888"
COLUMNS = 3
ROW_HEIGHT = 0.16  # inches
TICKS = [factor * 10.0**k for k in range(-4, 5) for factor in (1, 2, 5)]
TITLE_WIDTH = 120  # letters


def figures() -> ModuleType:
    """The module `matplotlib.figure`. Raises MissingExtra."""
    return needs("matplotlib.figure", "--plot")


def suffixes() -> set[str]:
    """The suffixes of files that matplotlib can write. Raises MissingExtra."""
    canvas = figures().Figure().canvas
    return {f".{name}" for name in canvas.get_supported_filetypes()}


def save_plot(path: Path, results: Sequence[SuiteResult], title: str) -> None:
    """Draws the suites that have a measured row; the suffix of `path` gives the format.

    A full dot is the ratio as in a user's program, its line shows the quartiles, and a
    ring is the ratio without page faults. Vertical lines are at 1 and at the target of
    the geomean.

    Raises MissingExtra without matplotlib, OSError if `path` can't be written.
    """
    shown = [result for result in results if result.measured]
    columns = min(COLUMNS, max(1, len(shown)))
    lines = [shown[first : first + columns] for first in range(0, len(shown), columns)]
    heights = [max(len(each.measured) for each in line) + 6 for line in lines] or [10]
    figure = figures().Figure(
        figsize=(6 * columns, ROW_HEIGHT * sum(heights) + 1), layout="constrained"
    )
    figure.suptitle("\n".join(textwrap.wrap(title, TITLE_WIDTH)), fontsize=9)
    panels = figure.subplots(
        max(1, len(lines)), columns, squeeze=False, height_ratios=heights
    )
    for axes in panels.flat:
        axes.set_axis_off()
    for line, row_of_panels in zip(lines, panels, strict=False):
        for result, axes in zip(line, row_of_panels, strict=False):
            axes.set_axis_on()
            _draw(axes, result)
    figure.savefig(path, dpi=100)


def _draw(axes: Any, result: SuiteResult) -> None:
    rows = result.measured
    for place, row in enumerate(rows):
        _draw_row(axes, place, row)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.axvline(result.suite.target, color="#c8553d", linestyle="--", linewidth=0.8)
    said = f"{result.suite.name}: geomean {result.geomean:.2f}"
    axes.set_title(f"{said}, at most {result.suite.target:.2f}", fontsize=9)
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xticks([], minor=True)
    axes.set_xticks(ticks := [tick for tick in TICKS if low <= tick <= high])
    axes.set_xticklabels([f"{tick:g}" for tick in ticks])
    axes.set_xlabel("time on xpu / time on the CPU", fontsize=7)
    axes.set_yticks(range(len(rows)), [row.name for row in rows], fontsize=6)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="x", labelsize=6)
    axes.grid(alpha=0.3, axis="x", which="both")
    drawn = {_tier(row): None for row in rows}
    for tier in drawn:
        axes.scatter([], [], s=12, color=_color(tier), label=tier)
    axes.legend(fontsize=6, loc="best")


def _draw_row(axes: Any, place: int, row: RowResult) -> None:
    assert row.ratio is not None
    color = _color(_tier(row))
    axes.plot([row.ratio.low, row.ratio.high], [place, place], color=color, linewidth=1)
    axes.scatter([row.ratio.value], [place], s=12, color=color)
    if row.neutral is not None:
        axes.scatter(
            [row.neutral.value], [place], s=22, facecolors="none", edgecolors=color,
            linewidths=0.7,
        )  # fmt: skip


def _tier(row: RowResult) -> str:
    """The tier with most calls."""
    return row.tier.partition(" ")[0]


def _color(tier: str) -> str:
    return TIER_COLORS.get(tier, OTHER_COLOR)
