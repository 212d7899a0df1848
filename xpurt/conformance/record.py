"""Collects the results of the trials of one pair."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from xpurt.conformance.inputs import described
from xpurt.conformance.results import Failure, Result
from xpurt.conformance.tiers import Tiers
from xpurt.conformance.trial import Verdict
from xpurt.testing import Disagreement

FAILURES_KEPT = 3
LONGEST_MESSAGE = 800
NOT_ON_CPU: tuple[Verdict, ...] = ("raised", "stock")


class Record:
    """The growing result of a pair.

    tell: receives the name of each trial before it runs, so that it is known if the
        process ends in it.
    """

    def __init__(
        self, name: str, dtype: str, category: str, tell: Callable[[str], None]
    ) -> None:
        self.tiers = Tiers()
        self._result = Result(name, dtype, category)
        self._tell = tell
        self._trials: Counter[str] = Counter()
        self._runs_on_cpu = False
        self._started = time.perf_counter()

    def attempt(
        self, variant: str, index: int, sample: Any, run: Callable[[], Verdict]
    ) -> None:
        """Runs one trial. The result shows its sample if it fails."""
        self._tell(f"{variant}, sample {index}")
        try:
            verdict = run()
        except Disagreement as difference:
            self.failed(variant, index, sample, str(difference))
            return
        except Exception as error:
            # An error in the comparison or in the preparation counts as a failure.
            message = f"{type(error).__name__} outside of the op: {error}"
            self.failed(variant, index, sample, message)
            return
        self._trials[verdict] += 1
        self._runs_on_cpu |= variant == "call" and verdict not in NOT_ON_CPU

    def failed(self, variant: str, index: int, sample: Any, message: str) -> None:
        self._trials["failed"] += 1
        self._runs_on_cpu = True
        self._result.failed += 1
        if len(self._result.failures) < FAILURES_KEPT:
            shown = Failure(
                variant, index, described(sample), message.strip()[:LONGEST_MESSAGE]
            )
            self._result.failures.append(shown)

    def result(self) -> Result:
        result = self._result
        result.trials = dict(self._trials)
        result.tiers = dict(self.tiers.calls)
        result.seconds = round(time.perf_counter() - self._started, 3)
        if result.failed:
            result.status = "failed"
        elif not self._runs_on_cpu:
            result.status = "not on the CPU"
        return result
