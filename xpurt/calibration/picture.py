"""The crossovers as a picture: the speed of kernels relative to PyTorch's CPU kernels.

One panel per kind of op, all on the same axes. A line is a class of ops in one type and
layout. Its colour is that of the tier that is faster at this size. Its label is at its
end.
"""

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from xpurt.kernels import Curve
from xpurt.startup.extras import needs

KERNEL_COLOR: Final = "#2a6fbb"
NATIVE_COLOR: Final = "#c77700"

_TYPES: Final = {
    "f": "float32",
    "d": "float64",
    "h": "float16",
    "b": "bfloat16",
    "l": "int64",
}
# Kinds of ops, and the classes of each; classes without a kind are drawn last.
_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "addition and its like": ("cheap",),
    "exponentials, powers, remainders": (
        *("dear", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp"),
        *("xlogy", "pow", "remainder", "fmod", "hypot"),
    ),
    "sines and their like": (
        *("sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    ),
    "activations, special functions": (
        *("erf", "erfc", "sigmoid", "silu", "gelu", "mish", "elu", "softplus"),
        *("silu_backward", "gelu_backward", "lgamma", "special"),
        *("incomplete_gamma", "modified_bessel", "polynomials"),
    ),
    "sums, softmax": ("reduction", "softmax"),
    "normalization": ("batch_norm", "channel_norm", "line_norm"),
    "extremes, variance, scans": ("extremes", "moments", "scan"),
    "matrix products": ("matmul",),
    "convolution, attention": ("convolution", "attention"),
    "pooling, resizing, padding": ("pooling", "averaging", "upsampling", "padding"),
    "indexing": ("gathering", "indexing", "scattering", "rearranging"),
    "random numbers, losses": ("draws", "losses"),
}
_OTHERS: Final = "others"
_COLUMNS: Final = 4
# In a panel with more lines than this, only the outermost have labels.
_MOST_LABELS: Final = 8
# The distance between labels, as a share of the panel's height.
_LABEL_HEIGHT: Final = 0.085


def save_plot(path: Path, curves: Sequence[Curve], title: str) -> None:
    """Writes the picture to `path`; its suffix decides the format.

    Raises `MissingExtra` without matplotlib, ValueError for a suffix unknown to
    matplotlib, and OSError if `path` can't be written.
    """
    # A Figure instead of pyplot: no window system and no global state.
    figure_class = needs("matplotlib.figure", "the picture").Figure
    panels = panels_of(curves)
    rows = max(1, math.ceil(len(panels) / _COLUMNS))
    figure = figure_class(figsize=(15, 3.1 * rows + 0.9), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=13)
    grid = figure.subplots(
        rows, _COLUMNS, sharex=True, sharey=True, squeeze=False
    ).flatten()
    _set_axes(grid[0], curves)
    for axes, (kind, some) in zip(grid, panels.items(), strict=False):
        _draw(axes, kind, some)
    for axes in grid[len(panels) :]:
        axes.set_axis_off()
    for column in range(min(_COLUMNS, len(panels))):
        last = column + (len(panels) - 1 - column) // _COLUMNS * _COLUMNS
        grid[last].set_xlabel("elements (of products: multiply-adds)", fontsize=8)
        grid[last].tick_params(labelbottom=True)
    figure.supylabel(
        "times as quick by a kernel as by PyTorch's CPU kernel", fontsize=10
    )
    figure.savefig(path, dpi=110)


def panels_of(curves: Sequence[Curve]) -> dict[str, list[Curve]]:
    """The curves of each kind that has any, in the order of the panels."""
    kind_of = {name: kind for kind, names in _KINDS.items() for name in names}
    panels: dict[str, list[Curve]] = {kind: [] for kind in (*_KINDS, _OTHERS)}
    for curve in curves:
        panels[kind_of.get(curve.cost_class, _OTHERS)].append(curve)
    return {kind: some for kind, some in panels.items() if some}


def labels_of(curves: Sequence[Curve]) -> list[str]:
    """The label of each curve of a panel, without the parts that all curves share."""
    classes = {curve.cost_class for curve in curves}
    types = {curve.letter for curve in curves}
    labels = []
    for curve in curves:
        parts = [curve.cost_class] if len(classes) > 1 else []
        if len(types) > 1 and (curve.letter != "f" or not parts):
            parts.append(_TYPES.get(curve.letter, curve.letter))
        if curve.layout != "alike":
            parts.append(curve.layout)
        labels.append(" ".join(parts) or curve.cost_class)
    return labels


def ratios(curve: Curve) -> list[float]:
    """The native time divided by the kernel's, per point: above 1 the kernel is
    faster."""
    return [point.native_us / point.kernel_us for point in curve.points]


def spread_out(
    heights: Sequence[float], distance: float, reach: float = math.inf
) -> list[float]:
    """The heights, moved so that no two are closer than `distance`. Their order stays,
    and as far as possible their positions, between -`reach` and `reach`."""

    def places(group: list[int]) -> list[float]:
        length = distance * (len(group) - 1)
        first = sum(heights[one] for one in group) / len(group) - length / 2
        first = max(min(first, reach - length), -reach)
        return [first + distance * i for i in range(len(group))]

    order = sorted(range(len(heights)), key=heights.__getitem__)
    # Groups of labels that touch. The middle of a group stays where it was.
    groups: list[list[int]] = []
    for one in order:
        groups.append([one])
        while len(groups) > 1 and (
            places(groups[-2])[-1] + distance > places(groups[-1])[0]
        ):
            last = groups.pop()
            groups[-1] += last
    moved = [0.0] * len(heights)
    for group in groups:
        for one, place in zip(group, places(group), strict=True):
            moved[one] = place
    return moved


def _set_axes(axes: Any, curves: Sequence[Curve]) -> None:
    """Sets the scales that all panels share; `axes` is a matplotlib Axes."""
    axes.set(xscale="log", yscale="log")
    found = [ratio for curve in curves for ratio in ratios(curve)] or [1.0]
    sizes = [point.elements for curve in curves for point in curve.points] or [1.0]
    reach = 1.3 * max(*found, *(1 / ratio for ratio in found), 2.0)
    axes.set_ylim(1 / reach, reach)
    # Space for the labels, to the right of the last point.
    axes.set_xlim(min(sizes) / 2, max(sizes) * (max(sizes) / min(sizes)) ** 0.3)
    ticks = [
        t for t in (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100) if 1 / reach < t < reach
    ]
    axes.set_yticks(ticks, [f"{tick:g}×" for tick in ticks])
    axes.set_yticks([], minor=True)


def _draw(axes: Any, kind: str, curves: Sequence[Curve]) -> None:
    low, high = axes.get_ylim()
    axes.axhspan(1, high, color=KERNEL_COLOR, alpha=0.07, linewidth=0)
    axes.axhspan(low, 1, color=NATIVE_COLOR, alpha=0.07, linewidth=0)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_title(kind, fontsize=10, loc="left", fontweight="bold")
    axes.tick_params(labelsize=8)
    for name in ("top", "right"):
        axes.spines[name].set_visible(False)
    for inside, height, color, text in (
        ("top", 0.97, KERNEL_COLOR, "kernel on the queue"),
        ("bottom", 0.03, NATIVE_COLOR, "PyTorch's CPU kernel"),
    ):
        axes.text(
            0.99, height, text, transform=axes.transAxes, va=inside, ha="right",
            color=color, fontsize=7.5,
        )  # fmt: skip
    for curve in curves:
        _draw_curve(axes, curve, thin=len(curves) > _MOST_LABELS)
    _label(axes, curves, math.log(high / low))


def _draw_curve(axes: Any, curve: Curve, *, thin: bool) -> None:
    """Draws each segment in the colour of the tier that is faster on it."""
    width, alpha = (0.9, 0.55) if thin else (1.6, 0.95)
    where = [
        (math.log(point.elements), math.log(ratio))
        for point, ratio in zip(curve.points, ratios(curve), strict=True)
    ]
    pieces: list[tuple[tuple[float, float], tuple[float, float]]] = []
    for (x, y), (next_x, next_y) in itertools.pairwise(where):
        if y * next_y < 0:  # the line crosses 1, where the colour changes
            between = (x + (next_x - x) * y / (y - next_y), 0.0)
            pieces += [((x, y), between), (between, (next_x, next_y))]
        else:
            pieces.append(((x, y), (next_x, next_y)))
    for begin, end in pieces:
        axes.plot(
            [math.exp(begin[0]), math.exp(end[0])],
            [math.exp(begin[1]), math.exp(end[1])],
            color=_color(begin[1] + end[1]), linewidth=width, alpha=alpha,
            solid_capstyle="round",
        )  # fmt: skip


def _label(axes: Any, curves: Sequence[Curve], height: float) -> None:
    """Labels the lines at their ends. `height`: the panel's, in natural logarithms."""
    ends = [math.log(ratios(curve)[-1]) for curve in curves]
    named = list(zip(curves, labels_of(curves), ends, strict=True))
    if len(named) > _MOST_LABELS:
        named.sort(key=lambda each: each[2])
        outer = _MOST_LABELS // 2
        named = [*named[:outer], *named[-outer:]]
        axes.text(
            0.02, 0.97, f"named: the {2 * outer} outermost of {len(curves)}", ha="left",
            va="top", transform=axes.transAxes, fontsize=7, color="#555555",
        )  # fmt: skip
    places = spread_out(
        [end for _, _, end in named], _LABEL_HEIGHT * height, 0.42 * height
    )
    for (curve, text, end), place in zip(named, places, strict=True):
        axes.annotate(
            text,
            (curve.points[-1].elements, math.exp(end)),
            xytext=(curve.points[-1].elements * 1.6, math.exp(place)),
            fontsize=7,
            va="center",
            color=_color(end),
            arrowprops={"arrowstyle": "-", "color": _color(end), "linewidth": 0.4},
        )


def _color(log_ratio: float) -> str:
    return KERNEL_COLOR if log_ratio > 0 else NATIVE_COLOR
