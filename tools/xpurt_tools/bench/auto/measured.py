"""The times of a case, and its verdict."""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from xpurt_tools.bench import calibration_loop
from xpurt_tools.bench.auto.case import AutoCase
from xpurt_tools.bench.auto.cases import GROUP_LIMITS

Seconds = dict[str, float]
EQUAL = "met: equal within the noise"


@dataclass(frozen=True, slots=True)
class Measured:
    """The times of a case.

    rounds: seconds per call by mapping, one for each round, in which the mappings took
        turns.
    load: of the machine: see `CalibrationLoop`.
    op_report: AUTO's ops in these rounds.
    """

    case: AutoCase
    rounds: tuple[Seconds, ...]
    load: float = 1.0
    op_report: str = ""

    @property
    def seconds(self) -> Seconds:
        """The median by mapping."""
        return {
            mapping: statistics.median(each[mapping] for each in self.rounds)
            for mapping in self.rounds[0]
        }

    @property
    def values(self) -> list[float]:
        """What is compared with the limit, of each round: AUTO's time divided by the
        time that its limit compares with, or the nanoseconds that it adds."""
        limit, auto = self.case.limit, self.case.auto
        return [limit.value(each[auto], each) for each in self.rounds]

    @property
    def value(self) -> float:
        return statistics.median(self.values)

    @property
    def quartiles(self) -> tuple[float, float]:
        if len(self.rounds) < 2:
            return self.value, self.value
        low, _, high = statistics.quantiles(self.values, n=4, method="inclusive")
        return low, high

    @property
    def is_met(self) -> bool:
        limit = self.case.limit
        return self.value <= max(limit.most, limit.noise)

    @property
    def is_judged(self) -> bool:
        """Whether the machine was idle enough."""
        return self.load <= calibration_loop.MOST

    @property
    def verdict(self) -> str:
        if not self.is_judged:
            return calibration_loop.TOO_BUSY
        if self.is_met and self.value > self.case.limit.most:
            return EQUAL
        return "met" if self.is_met else "not met"

    @property
    def efficiency(self) -> float | None:
        """Of co-execution; None for a case of another kind."""
        return 1 / self.value if self.case.limit.together else None

    def as_data(self) -> dict[str, Any]:
        """For JSON. With the report of the ops if the limit is not met."""
        return {
            "case": self.case.name,
            "group": self.case.group,
            "rounds": list(self.rounds),
            "value": self.value,
            "quartiles": list(self.quartiles),
            "unit": "ns" if self.case.limit.added_ns else "ratio",
            "most": self.case.limit.most,
            "efficiency": self.efficiency,
            "load": self.load,
            "verdict": self.verdict,
            "op_report": "" if self.is_met else self.op_report,
        }


def group_sentences(found: Sequence[Measured]) -> Iterator[str]:
    """The verdict on each group that was measured."""
    for group, most in GROUP_LIMITS.items():
        members = [each for each in found if each.case.group == group]
        if not members:
            continue
        mean = math.exp(statistics.fmean(math.log(each.value) for each in members))
        met = "met" if mean <= most else "not met"
        if not all(each.is_judged for each in members):
            met = calibration_loop.TOO_BUSY
        yield f"{group}: {mean:.3f} over the best, geometric mean; at most {most}: {met}"
