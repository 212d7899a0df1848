"""Plots of a page: lines of marks on one axis, in panels.

Positions are percentages of the axis, so that a plot is as wide as the page allows, and
its text keeps its size.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Shape = Literal["bar", "range", "dot", "ring", "tick"]

# Factors of the labels between decades, which are omitted on narrow pages.
_BETWEEN_DECADES = (2, 5)
_MOST_TICKS = 9


@dataclass(frozen=True, slots=True)
class Tick:
    """position: in percent of the axis. major: shown on narrow pages, too."""

    position: float
    label: str
    major: bool


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from `low` to `high`; both are above 0 if it is logarithmic."""

    low: float
    high: float
    label: str
    log: bool = False
    tick_text: Callable[[float], str] = "{:g}".format

    @staticmethod
    def around(values: Sequence[float], label: str, *, least: float) -> "Axis":
        """A logarithmic axis of ratios that spans all values, and 1/least to least."""
        finite = [value for value in values if value > 0 and math.isfinite(value)]
        low, high = min([*finite, 1 / least]), max([*finite, least])
        return Axis(low / 1.08, high * 1.08, label, log=True)

    def at(self, value: float) -> float:
        """The position of a value in percent, clamped to 0 to 100."""
        if self.log:
            if value <= 0:
                return 0.0
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(100 * min(max(share, 0.0), 1.0), 3)

    def ticks(self) -> list[Tick]:
        if not self.log:
            steps = [self.low + (self.high - self.low) * i / 4 for i in range(5)]
            return [
                Tick(self.at(v), self.tick_text(v), i % 2 == 0)
                for i, v in enumerate(steps)
            ]
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        decades = [k for k in range(first, last + 1) if self._inside(10.0**k)]
        # Every decade if there are few of them, else every second or third.
        step = math.ceil(len(decades) / _MOST_TICKS) or 1
        found = [(10.0**k, k % (2 * step) == 0 or len(decades) <= 3) for k in decades]
        found = [(value, major) for value, major in found if major or step == 1]
        if len(decades) <= 3:
            between = [
                factor * 10.0**k
                for k in range(first - 1, last + 1)
                for factor in _BETWEEN_DECADES
            ]
            found += [(value, False) for value in between if self._inside(value)]
        return [Tick(self.at(v), self.tick_text(v), m) for v, m in sorted(found)]

    def _inside(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark of a row. color: the name of a color in page.css.

    start, end: in percent of the axis; a dot, a ring and a tick have only `start`.
    about: the text shown when the pointer is over the mark.
    """

    shape: Shape
    color: str
    start: float
    end: float = 0.0
    about: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """label: the text on the left. value: the number on the right."""

    label: str
    marks: tuple[Mark, ...]
    value: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A vertical line through a panel: at 1.0, or at a target."""

    position: float
    color: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    rows: tuple[Row, ...]
    note: str = ""
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """Panels on the same axis. legend: names of colors with their meaning.

    about: the plot in one sentence, for screen readers.
    """

    axis: Axis
    panels: tuple[Panel, ...]
    about: str
    legend: tuple[tuple[str, str], ...] = ()
    empty: str = "Nothing was measured."
