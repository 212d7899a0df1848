"""What parts of AUTO's planning are worth: simulated times of chains without one, over those
with it.

    python tests/bench/bench_auto_parts.py
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import geometric_mean
from unittest import mock

from xpurt import _C
from xpurt_tools.simulation import fleets
from xpurt_tools.simulation.co_execution import _Run, co_execute
from xpurt_tools.simulation.divided_ops import (
    DividedOp,
    attention,
    convolution,
    pointwise,
    product,
    reduction,
    softmax,
)

SEEDS = range(5)
FLEETS = {
    "2 cards": fleets.alike(2),
    "4 cards": fleets.alike(4),
    "a CPU and a card": fleets.mixed(2),
    "a CPU and 3 cards": fleets.mixed(4),
    "2 halves of a CPU": fleets.one_memory(1, 1),
}
CHAINS = {
    "product 1024": [product(1024, 1024, 1024)],
    "product 2048": [product(2048, 2048, 2048)],
    "product 4096": [product(4096, 4096, 4096)],
    "product 2048 of a new operand": [
        replace(product(2048, 2048, 2048), fresh_whole=True)
    ],
    "MLP": [
        product(4096, 1024, 1024),
        pointwise(4096, 1024, 1),
        product(4096, 1024, 1024),
        softmax(4096, 1024),
    ],
    "attention": [
        product(2048, 1024, 1024),
        attention(128, 512),
        product(2048, 1024, 1024),
    ],
    "convolutions": [
        convolution(32, 64, 56),
        pointwise(32, 64 * 56 * 56, 1),
        convolution(32, 64, 56),
    ],
    "light ops": [softmax(8192, 1024), pointwise(8192, 1024), reduction(8192, 1024)],
}


@contextmanager
def without_copies_that_stay() -> Iterator[None]:
    """A new regret for each call never adds up to a copy."""
    divided = _Run._divided

    def forgetting(
        run: _Run, number: int, op: DividedOp, booked: list[float]
    ) -> object:
        run.regrets[number] = _C.CopyRegret()
        return divided(run, number, op, booked)

    with mock.patch.object(_Run, "_divided", forgetting):
        yield


def time(chain: list[DividedOp], fleet: list, **options: bool) -> float:
    times = [co_execute(chain, fleet, seed=seed, **options).together for seed in SEEDS]
    return math.fsum(times) / len(times)


def apart(chain: list[DividedOp], fleet: list) -> float:
    return time(chain, fleet, shared_boundary=False)


def never_copied(chain: list[DividedOp], fleet: list) -> float:
    with without_copies_that_stay():
        return time(chain, fleet)


PARTS: dict[str, Callable[..., float]] = {
    "steady boundaries": apart,
    "copies that stay": never_copied,
}


def main() -> None:
    print("| part | geometric mean | least | most | in |")
    print("|---|---:|---:|---:|---|")
    for name, without in PARTS.items():
        ratios = {
            f"{chain}, {fleet}": without(CHAINS[chain], FLEETS[fleet])
            / time(CHAINS[chain], FLEETS[fleet])
            for chain in CHAINS
            for fleet in FLEETS
        }
        case = max(ratios, key=lambda each: ratios[each])
        low, high = min(ratios.values()), max(ratios.values())
        mean = geometric_mean(ratios.values())
        print(f"| {name} | {mean:.2f} | {low:.2f} | {high:.2f} | {case} |")


if __name__ == "__main__":
    main()
