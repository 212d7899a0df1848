"""The demo's picture: learning curves, and the share of each device."""

from collections.abc import Sequence
from pathlib import Path

from xpurt.demo.report import Share
from xpurt.demo.training import History
from xpurt.extras import needs

TIER_COLORS = {
    "sycl": "#2a6fbb",
    "onednn": "#4fb286",
    "native": "#e0a030",
    "copy": "#c8553d",
}


def save_plot(
    path: Path, histories: Sequence[History], parts: Sequence[Share], title: str
) -> None:
    """Write the picture to `path`; its suffix decides the format.

    Raises `MissingExtra` without matplotlib, ValueError for a suffix that matplotlib
    does not know, OSError where `path` can't be written.
    """
    # A figure of its own, not pyplot's: no window system and no global state.
    figure_class = needs("matplotlib.figure", "the demo").Figure
    figure = figure_class(figsize=(12, 4), layout="constrained")
    figure.suptitle(title)
    loss, accuracy, share = figure.subplots(1, 3)
    for history in histories:
        numbers = range(1, len(history.epochs) + 1)
        loss.plot(numbers, [e.loss for e in history.epochs], label=history.device)
        accuracy.plot(
            numbers, [100 * e.accuracy for e in history.epochs], label=history.device
        )
    loss.set(title="loss", xlabel="epoch", yscale="log")
    accuracy.set(title="test accuracy, %", xlabel="epoch")
    for axes in (loss, accuracy):
        axes.legend()
        axes.grid(alpha=0.3)
    _draw_shares(share, parts)
    figure.savefig(path, dpi=120)


def _draw_shares(axes, parts: Sequence[Share]) -> None:  # type: ignore[no-untyped-def]
    """One bar per device, divided by tier; `axes` is a matplotlib Axes."""
    devices = list(dict.fromkeys(part.device for part in parts))
    calls = sum(part.calls for part in parts) or 1
    filled = dict.fromkeys(devices, 0.0)
    for tier in dict.fromkeys(part.tier for part in parts):
        widths = dict.fromkeys(devices, 0.0)
        for part in parts:
            if part.tier == tier:
                widths[part.device] += 100 * part.calls / calls
        axes.barh(
            devices,
            list(widths.values()),
            left=list(filled.values()),
            color=TIER_COLORS.get(tier, "#888888"),
            label=tier,
        )
        filled = {d: filled[d] + widths[d] for d in devices}
    axes.set(title="ops per device and tier, % of calls", xlim=(0, 100))
    axes.set_yticks(range(len(devices)), [_short(device) for device in devices])
    if parts:
        axes.legend(loc="lower right")


def _short(name: str, width: int = 24) -> str:
    return name if len(name) <= width else name[: width - 1] + "…"
