"""A picture of the tasks on each device over time."""

from collections.abc import Sequence
from os import PathLike

from xpurt.startup.extras import needs

ROW_HEIGHT = 0.45  # inches
COLORS = ("#2a6fbb", "#4fb286", "#e0a030", "#c8553d", "#7a6cb0", "#888888")
LETTERS = 150  # that fit in a row of the full width

Bar = tuple[str, float, float]  # name, start, finish


def save_gantt(
    path: str | PathLike[str],
    rows: Sequence[Sequence[Bar]],
    title: str,
    names: Sequence[str] | None = None,
) -> None:
    """Draws a row of bars per device.

    Raises MissingExtra, a ModuleNotFoundError, without matplotlib, OSError, and
    ValueError for a suffix that matplotlib does not write.
    """
    figure_class = needs("matplotlib.figure", "plot").Figure
    figure = figure_class(
        figsize=(10, ROW_HEIGHT * len(rows) + 1.2), layout="constrained"
    )
    axes = figure.subplots()
    end = max((finish for bars in rows for _, _, finish in bars), default=0.0)
    for row, bars in enumerate(rows):
        axes.barh(
            [row] * len(bars),
            [finish - start for _, start, finish in bars],
            left=[start for _, start, _ in bars],
            height=0.8,
            color=COLORS[row % len(COLORS)],
            edgecolor="white",
            linewidth=0.5,
        )
        for name, start, finish in bars:
            if len(name) * end > LETTERS * (finish - start):
                continue
            middle = (start + finish) / 2
            axes.text(middle, row, name, ha="center", va="center", fontsize=6)
    axes.set_yticks(
        range(len(rows)), names or [f"device {row}" for row in range(len(rows))]
    )
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel("time")
    axes.set_title(title, fontsize=10)
    figure.savefig(path, dpi=120)
