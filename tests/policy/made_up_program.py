"""A made-up program that calls one op again and again, for tests of the learner."""

from collections.abc import Callable

from xpurt import _C

BUILD_US = 100_000.0
Clock = Callable[[bool, int], float]  # of tier and number of the call: microseconds


class Program:
    """Calls one op again and again; the learner gets the times of `clock`."""

    def __init__(
        self, learner: _C.testing.Learner, clock: Clock, build_us: float = BUILD_US
    ) -> None:
        self.learner = learner
        self.clock = clock
        self.build_us = build_us
        self.calls = 0
        self.spent_us = 0.0  # in calls and a build
        self.stalled_us = 0.0
        self.built_after_us: float | None = None

    def run(self, calls: int) -> None:
        end = self.calls + calls
        while self.calls < end:
            self.decide()

    def run_for(self, us: float) -> None:
        end = self.spent_us + us
        while self.spent_us < end:
            self.decide()

    def decide(self) -> bool:
        """One decision, with the calls that reuse it: whether the kernel ran them."""
        kernel, is_timed, more = self.learner.next(self.build_us)
        if kernel and self.built_after_us is None:
            self.built_after_us = self.spent_us
            self.spent_us += self.build_us
        for _ in range(1 + more):
            us = self.clock(kernel, self.calls)
            self.calls += 1
            self.spent_us += us
        if is_timed:
            # A kernel's sample waits for it, which another call would not.
            stall_us = us if kernel else 0.0
            self.stalled_us += stall_us
            self.learner.record(kernel, us, stall_us)
        return kernel
