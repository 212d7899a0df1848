"""The demo's picture: learning curves, and the time of each device and tier."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from xpurt.demo.report import Share
from xpurt.demo.training import Epoch, History
from xpurt.startup.extras import needs

TIER_COLORS = {
    "sycl": "#2a6fbb",
    "onednn": "#4fb286",
    "native": "#e0a030",
    "copy": "#c8553d",
}
# By history; the first one is drawn widest.
CURVE_COLORS = ("#9ec5e8", "#16324f", "#c8553d")


def save_plot(
    path: Path, histories: Sequence[History], parts: Sequence[Share], title: str
) -> None:
    """Writes the picture to `path`; its suffix gives the format.

    Raises `MissingExtra` without matplotlib, ValueError for a suffix that matplotlib
    does not know, OSError if `path` can't be written.
    """
    # A Figure without pyplot needs no window system and has no global state.
    figure_class = needs("matplotlib.figure", "the demo").Figure
    figure = figure_class(figsize=(14, 4.4), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left")
    loss, accuracy, times = figure.subplots(1, 3, width_ratios=(1, 1, 1.5))
    _draw_curves(loss, histories, lambda epoch: epoch.loss)
    _draw_curves(accuracy, histories, lambda epoch: 100 * epoch.accuracy)
    loss.set_title("loss", loc="left")
    loss.set_yscale("log")
    accuracy.set_title("test accuracy, %", loc="left")
    _draw_times(times, parts)
    figure.savefig(path, dpi=120)


def _draw_curves(
    axes: Any, histories: Sequence[History], value: Callable[[Epoch], float]
) -> None:
    """`axes` is a matplotlib Axes.

    Devices that compute the same have the same curve: each curve is drawn narrower than
    the one below it, so that all are visible.
    """
    for number, history in enumerate(histories):
        left = len(histories) - 1 - number
        axes.plot(
            range(1, len(history.epochs) + 1),
            [value(epoch) for epoch in history.epochs],
            color=CURVE_COLORS[number % len(CURVE_COLORS)],
            linewidth=1.5 + 5 * left,
            marker="o",
            markersize=3 + 6 * left,
            solid_capstyle="round",
            label=history.device,
        )
    axes.set(xlabel="epoch")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    _without_frame(axes)


def _draw_times(axes: Any, parts: Sequence[Share]) -> None:
    """A bar per device and tier, with its time beside it, even if it is short."""
    axes.set_title("time in ops, by device and tier", loc="left")
    devices = list(dict.fromkeys(part.device for part in parts))
    rows = sorted(parts, key=lambda part: (devices.index(part.device), -part.time_ms))
    total = sum(part.time_ms for part in rows) or 1
    for place, part in enumerate(rows):
        color = TIER_COLORS.get(part.tier, "#888888")
        axes.barh(place, part.time_ms, color=color, height=0.6)
        axes.annotate(
            f"{part.time_ms:,.1f} ms, {part.time_ms / total:.1%}",
            (part.time_ms, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=color,
        )
    axes.set_yticks(
        range(len(rows)), [f"{part.tier}  |  {_short(part.device)}" for part in rows]
    )
    axes.tick_params(axis="y", length=0, labelsize=8)
    for above, (one, other) in enumerate(pairwise(rows)):
        if one.device != other.device:
            axes.axhline(above + 0.5, color="#bbbbbb", linewidth=0.8)
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_xlim(0, 1.3 * max((part.time_ms for part in rows), default=1.0) or 1)
    axes.set_xlabel("milliseconds that the host spent in these ops")
    _without_frame(axes)


def _without_frame(axes: Any) -> None:
    for name in ("top", "right"):
        axes.spines[name].set_visible(False)


def _short(name: str, width: int = 26) -> str:
    return name if len(name) <= width else name[: width - 1] + "…"
