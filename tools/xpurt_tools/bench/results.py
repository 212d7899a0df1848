"""The results of rows and suites, and whether they meet the targets."""

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from xpurt_tools.bench import calibration_loop
from xpurt_tools.bench.limits import Limits
from xpurt_tools.bench.row import Mean, Suite
from xpurt_tools.bench.timing import Ratio


@dataclass(frozen=True, slots=True)
class OtherResult:
    """The time of another library, and the ratios of xpu's times to it; or the reason
    why there is none.

    missing: the module that is not installed.
    """

    error: str = ""
    missing: str = ""
    seconds: float = 0.0
    ratio: Ratio | None = None
    processor: Ratio | None = None


@dataclass(frozen=True, slots=True)
class RowResult:
    """The measurements of a row, or the reason why there are none.

    ratio: xpu/CPU as in a user's program. neutral: the same without page faults of the
    CPU allocator; equal to `ratio` if a call on the CPU causes none, None if malloc
    can't be made to keep memory. processor: of processor times. faults: page faults of a
    call on the CPU, as in a user's program. load: of the machine, see `CalibrationLoop`.
    tiers: calls of ops per tier, of one call on xpu. cpu_bytes, xpu_bytes: of a row whose
    memory is compared, and not its time.
    """

    name: str
    error: str = ""
    cpu_s: float = 0.0
    xpu_s: float = 0.0
    cpu_bytes: float = 0.0
    xpu_bytes: float = 0.0
    ratio: Ratio | None = None
    neutral: Ratio | None = None
    neutral_cpu_s: float | None = None
    processor: Ratio | None = None
    load: float = 1.0
    faults: float = 0.0
    rounds: int = 0
    tiers: dict[str, int] = field(default_factory=dict)
    size_bytes: int = 0
    flops: int = 0
    elements: int = 0
    others: dict[str, OtherResult] = field(default_factory=dict)

    @property
    def quiet(self) -> bool:
        """Whether other programs left the cores to the measurement."""
        return self.load <= calibration_loop.MOST

    @property
    def gb_per_s(self) -> float:
        return self.size_bytes / self.xpu_s / 1e9 if self.xpu_s else 0.0

    @property
    def gflop_per_s(self) -> float:
        return self.flops / self.xpu_s / 1e9 if self.xpu_s else 0.0

    @property
    def tier(self) -> str:
        """The tiers by calls, most calls first: "onednn", "native 12, sycl 3"."""
        if len(self.tiers) < 2:
            return next(iter(self.tiers), "-")
        ordered = sorted(self.tiers.items(), key=lambda each: (-each[1], each[0]))
        return ", ".join(f"{tier} {calls}" for tier, calls in ordered)

    def as_data(self) -> dict[str, Any]:
        return asdict(self) | {
            "gb_per_s": self.gb_per_s,
            "gflop_per_s": self.gflop_per_s,
        }


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """The rows of a suite that were measured or failed."""

    suite: Suite
    rows: tuple[RowResult, ...]

    def with_row(self, row: RowResult) -> "SuiteResult":
        return SuiteResult(self.suite, (*self.rows, row))

    @property
    def whole(self) -> bool:
        """Whether no row was left out."""
        return len(self.rows) >= len(self.suite.rows)

    @property
    def measured(self) -> list[RowResult]:
        return [row for row in self.rows if row.ratio is not None]

    @property
    def quiet(self) -> list[RowResult]:
        """The measured rows that are judged."""
        return [row for row in self.measured if row.quiet]

    @property
    def disturbed(self) -> list[RowResult]:
        """The rows that other programs disturbed: no mean has them, and no limit."""
        return [row for row in self.measured if not row.quiet]

    def judged(self, of: RowResult | OtherResult) -> Ratio | None:
        """The ratio that the suite has limits for."""
        return of.processor if self.suite.processor else of.ratio

    @property
    def geomean(self) -> float | None:
        return geomean(map(self.judged, self.quiet))

    def mean(self, wanted: Mean) -> float | None:
        rows = (row for row in self.quiet if fnmatchcase(row.name, wanted.rows))
        return geomean(map(self.judged, rows))

    @property
    def neutral_geomean(self) -> float | None:
        return geomean(row.neutral for row in self.quiet)

    def limit_of(self, row: RowResult) -> float | None:
        return self.suite.limit_of(row.name, row.elements)

    @property
    def over_the_limit(self) -> list[RowResult]:
        """Rows that exceed the limit for a single row."""
        found = []
        for row in self.quiet:
            limit, ratio = self.limit_of(row), self.judged(row)
            if limit is not None and ratio is not None and ratio.value > limit:
                found.append(row)
        return found

    def beside_others(self) -> Iterator[tuple[RowResult, str, float, float]]:
        """Rows with a limit for another library: its name, the ratio, the limit."""
        for row in self.quiet:
            declared = self.suite.row(row.name)
            for name, limit in declared.others_at_most.items() if declared else ():
                ratio = self.judged(row.others.get(name, OtherResult()))
                if ratio is not None:
                    yield row, name, ratio.value, limit

    @property
    def met(self) -> bool | None:
        """Whether the geomean is within its target; None if nothing was measured."""
        return self._within(self.geomean, self.suite.target)

    @property
    def neutral_met(self) -> bool | None:
        """The same without page faults; None also if there is no such target."""
        if self.suite.neutral_target is None:
            return None
        return self._within(self.neutral_geomean, self.suite.neutral_target)

    @staticmethod
    def _within(value: float | None, target: float) -> bool | None:
        return None if value is None else value <= target

    def shares(self, limits: Limits) -> list[tuple[RowResult, float]]:
        """The rows that have to reach a share of a limit, with the share they reach."""
        reach = self.suite.reach
        if reach is None:
            return []
        most = getattr(limits, reach.limit)
        of_flops = reach.limit != "triad"
        return [
            (row, (row.gflop_per_s if of_flops else row.gb_per_s) / most)
            for row in self.quiet
            if reach.rows in row.name and most > 0
        ]

    def as_data(self, limits: Limits) -> dict[str, Any]:
        return {
            "name": self.suite.name,
            "about": self.suite.about,
            "whole": self.whole,
            "geomean": self.geomean,
            "target": self.suite.target,
            "met": self.met,
            "neutral_geomean": self.neutral_geomean,
            "neutral_target": self.suite.neutral_target,
            "neutral_met": self.neutral_met,
            "disturbed": [row.name for row in self.disturbed],
            "over_the_limit": [row.name for row in self.over_the_limit],
            "means": {each.rows: self.mean(each) for each in self.suite.means},
            "reach": asdict(self.suite.reach) if self.suite.reach else None,
            "shares": {row.name: share for row, share in self.shares(limits)},
            "rows": [row.as_data() for row in self.rows],
        }


def geomean(ratios: Iterable[Ratio | None]) -> float | None:
    """The geometric mean of the ratios that are not None; None if there is none."""
    values = [ratio.value for ratio in ratios if ratio is not None]
    return statistics.geometric_mean(values) if values else None
