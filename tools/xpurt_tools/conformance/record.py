"""Collects the results of the trials of one pair."""

import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from xpurt.testing import Disagreement
from xpurt_tools.conformance.inputs import described
from xpurt_tools.conformance.results import Failure, Result
from xpurt_tools.conformance.tiers import Tiers
from xpurt_tools.conformance.trial import Verdict

ON_THE_CPU = ", on the CPU"  # after the name of a trial
FAILURES_KEPT = 3
LONGEST_MESSAGE = 800
NOT_ON_CPU: tuple[Verdict, ...] = ("raised", "stock")


def trial_name(variant: str, index: int) -> str:
    return f"{variant}, sample {index}"


class Record:
    """The growing result of a pair.

    tell: receives the name of each trial before it runs, so that it is known if the
        process ends in it.
    skip: names of trials that are not run.
    swept: the pair is one of a sweep: a call that raises on the CPU counts, too.
    """

    def __init__(
        self,
        name: str,
        dtype: str,
        category: str,
        tell: Callable[[str], None],
        skip: Collection[str] = (),
        *,
        swept: bool = False,
    ) -> None:
        self.dtype = dtype
        self.tiers = Tiers()
        self.tell = tell
        self._skip = skip
        self._swept = swept
        self._running = "the start"
        self._result = Result(name, dtype, category)
        self._trials: Counter[str] = Counter()
        self._runs_on_cpu = False
        self._started = time.perf_counter()

    def attempt(
        self, variant: str, index: int, sample: Any, run: Callable[[], Verdict]
    ) -> None:
        """Runs one trial. The result shows its sample if it fails."""
        name = trial_name(variant, index)
        if name in self._skip:
            return
        self._running = name
        self.tell(name)
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
        self._runs_on_cpu |= self._swept or (
            variant.startswith("call") and verdict not in NOT_ON_CPU
        )

    def tell_side(self, side: str) -> None:
        """Tells that the running trial is in the CPU's part of it, or not any more."""
        self.tell(self._running + side)

    def failed(self, variant: str, index: int, sample: Any, message: str) -> None:
        self._trials["failed"] += 1
        self._runs_on_cpu = True
        self._result.add_failure(variant)
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
