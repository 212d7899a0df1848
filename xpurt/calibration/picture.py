"""The crossovers as a picture: how long each class takes by a kernel, relative to
PyTorch's CPU kernel."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xpurt.extras import needs
from xpurt.kernels import Curve

_TYPES = {
    "f": "float32",
    "d": "float64",
    "h": "float16",
    "b": "bfloat16",
    "l": "int64",
}


def save_plot(path: Path, curves: Sequence[Curve], title: str) -> None:
    """Writes the picture to `path`; its suffix decides the format.

    Raises `MissingExtra` without matplotlib, ValueError for a suffix that matplotlib
    does not know, OSError where `path` can't be written.
    """
    # A figure of its own, not pyplot's: no window system and no global state.
    figure_class = needs("matplotlib.figure", "the picture").Figure
    figure = figure_class(figsize=(12, 7), layout="constrained")
    figure.suptitle(title)
    several = _with_several_types(curves)
    left, right = figure.subplots(1, 2, sharey=True)
    _draw(left, [c for c in curves if c.cost_class in several], "several types")
    _draw(right, [c for c in curves if c.cost_class not in several], "one type")
    left.set(ylabel="time by a kernel / native: below 1 the kernel is taken")
    figure.savefig(path, dpi=120)


def _with_several_types(curves: Sequence[Curve]) -> set[str]:
    letters: dict[str, set[str]] = {}
    for curve in curves:
        letters.setdefault(curve.cost_class, set()).add(curve.letter)
    return {name for name, found in letters.items() if len(found) > 1}


def _draw(axes: Any, curves: Sequence[Curve], title: str) -> None:
    """`axes` is a matplotlib Axes."""
    styles = dict.fromkeys(_TYPES, "-") | {
        "b": "--",
        "d": ":",
        "h": "-.",
        "l": (0, (1, 3)),
    }
    names = list(dict.fromkeys(curve.cost_class for curve in curves))
    for curve in curves:
        layout = "" if curve.layout == "alike" else f", {curve.layout}"
        axes.plot(
            [point.elements for point in curve.points],
            [point.kernel_us / point.native_us for point in curve.points],
            color=f"C{names.index(curve.cost_class) % 10}",
            linestyle=styles.get(curve.letter, "-"),
            alpha=1.0 if curve.layout == "alike" else 0.4,
            marker="."
            if len(names) <= 10
            else "x"
            if names.index(curve.cost_class) > 9
            else ".",
            label=f"{curve.cost_class}, {_TYPES.get(curve.letter, curve.letter)}{layout}",
        )
    axes.axhline(1, color="black", linewidth=1)
    axes.set(title=title, xlabel="elements", xscale="log", yscale="log")
    axes.grid(alpha=0.3)
    if curves:
        axes.legend(fontsize="x-small", ncols=2)
