"""What the parts of AUTO that correct wrong times are worth: the time of a program without
one, over that with it, where times are wrong and where they are right.

    python tests/bench/bench_auto_repairs.py

A program repeats a step of ops on two devices. An op runs where it is expected to end
first. One call in a hundred is timed, as are all calls of an op until its cost is known.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from xpurt import _C

OPS: Final = 30  # of a step
STEPS: Final = 2_000
HOME_US: Final = 100.0  # of an op at home
EXPECTED_US: Final = 80.0  # of an op on the other device, by calibration
SAMPLED: Final = 100  # calls to a timed one


@dataclass(slots=True)
class Op:
    learned: _C.testing.LearnedCost = field(default_factory=_C.testing.LearnedCost)
    calls: int = 0  # on the other device


def program(
    us_at: Callable[[int], float],
    *,
    prior: _C.testing.DevicePrior | None = None,
    slowdown: _C.testing.Slowdown | None = None,
) -> float:
    """Microseconds of all steps. us_at: of an op on the other device, by the step."""
    ops = [Op() for _ in range(OPS)]
    total = 0.0
    for step, name in itertools.product(range(STEPS), range(OPS)):
        op, us = ops[name], us_at(step)
        factor = slowdown.factor if slowdown else 1.0
        expected = EXPECTED_US * factor
        if op.learned.count:
            expected = op.learned.estimate(EXPECTED_US) * factor
        elif prior:
            expected = prior.corrected_us(expected)
        # From time to time the loser is looked at again, as exploration does.
        explores = step % 1_000 == 999 and name == 0
        if expected >= HOME_US and not explores:
            total += HOME_US
            continue
        total += us
        op.calls += 1
        wanted = slowdown is not None and slowdown.wants_samples
        if op.learned.has_converged and op.calls % SAMPLED and not wanted:
            continue
        if slowdown:
            slowdown.record(us / expected, us, op.learned.is_known)
        if prior:
            prior.record(name, us, EXPECTED_US)
        op.learned.record(us / (slowdown.factor if slowdown else 1.0))
    return total


def prior(us_at: Callable[[int], float]) -> float:
    return program(us_at) / program(us_at, prior=_C.testing.DevicePrior())


def slowdown(us_at: Callable[[int], float]) -> float:
    return program(us_at) / program(us_at, slowdown=_C.testing.Slowdown())


def lost_division(calls: int, shard_us: float, first_us: float) -> float:
    """An op of 1,000 us on each of two devices, of which halves take `shard_us`. The
    first ones took `first_us`."""

    def time(tried_again: bool) -> float:
        lost = _C.LostDivision()
        of_shards, total, trial = 2 * first_us, 0.0, 0
        for _ in range(calls):
            if of_shards / 2 + 5 < 1000:
                total += shard_us + 5
                continue
            if trial:
                total, trial = total + shard_us + 5, trial - 1
                of_shards = of_shards if trial else 2 * shard_us
                continue
            total += 1000
            if tried_again:
                shards = [of_shards, of_shards]
                if _C.divide_again([5, 5], shards, [1000, 1000], 1000, lost):
                    trial = 4
        return total

    return time(False) / time(True)


CASES: dict[str, dict[str, float]] = {
    "device prior": {
        "the device is 20 times slower than calibrated": prior(lambda _: 1600.0),
        "the same, the first ten steps": prior(lambda at: 1600.0 if at < 10 else 90.0),
        "as calibrated": prior(lambda _: EXPECTED_US),
    },
    "slowdown": {
        "5 times slower from a quarter on": slowdown(
            lambda at: 80.0 if at < STEPS // 4 else 400.0
        ),
        "the same for a tenth of the steps": slowdown(
            lambda at: 400.0 if 500 <= at < 700 else 80.0
        ),
        "as learned": slowdown(lambda _: EXPECTED_US),
    },
    "divisions that lost, tried again": {
        "10,000 calls, the first shards were disturbed": lost_division(
            10_000, 500.0, 1250.0
        ),
        "1,000 calls, the same": lost_division(1_000, 500.0, 1250.0),
        "10,000 calls, shards are slow": lost_division(10_000, 1250.0, 1250.0),
    },
}


def main() -> None:
    print("| part | case | without it, over with it |")
    print("|---|---|---:|")
    for part, cases in CASES.items():
        for case, ratio in cases.items():
            print(f"| {part} | {case} | {ratio:.3f} |")


if __name__ == "__main__":
    main()
