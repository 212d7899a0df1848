"""The time of an all_reduce among many ranks, by the latency and bandwidth of links.

A message of n bytes takes `latency + n / bandwidth` (R. Hockney, "The communication
challenge for MPP", Parallel Computing 20, 1994). A reduction adds the time of its
additions. The algorithms, for p ranks and n bytes:

- "ring": p - 1 steps of a reduce_scatter and p - 1 of an all_gather, each with n / p
  bytes to the next rank (P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce
  algorithms for clusters of workstations", JPDC 69, 2009). Gloo's is this one.
- "halving-doubling": log2 p steps each, with n / 2, n / 4, ... bytes to ranks at a
  distance of 1, 2, 4, ... (R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of
  collective communication operations in MPICH", IJHPCA 19, 2005).
- "tree": a reduction to one rank and a broadcast by binomial trees, with n bytes in
  each of their log2 p steps (the same paper).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from xpurt.errors import PlanningError


@dataclass(frozen=True, slots=True)
class Link:
    """Of one direction. latency_us: of a message. bytes_per_us: of a long one."""

    latency_us: float
    bytes_per_us: float

    def message_us(self, size_bytes: float, shared_by: int = 1) -> float:
        """shared_by: the messages that take the link at once."""
        return self.latency_us + size_bytes * shared_by / self.bytes_per_us


@dataclass(frozen=True, slots=True)
class Cluster:
    """Machines of equal size. Neighbouring ranks are on one machine.

    inside: between two ranks of a machine. between: of a machine, which its ranks
        share.
    ranks_per_machine: how many there are.
    added_bytes_per_us: the rate at which a rank adds what it has received.
    processors: of a machine, if they do the transfers themselves, as over sockets.
        More ranks than processors take turns.
    """

    name: str
    inside: Link
    between: Link
    ranks_per_machine: int
    added_bytes_per_us: float = math.inf
    processors: float = math.inf

    def step_us(self, ranks: int, distance: int, size_bytes: float) -> float:
        """The time in which all ranks send `size_bytes` to the rank at a distance."""
        on_machine = min(ranks, self.ranks_per_machine)
        slowest = self.inside.message_us(size_bytes)
        if ranks > self.ranks_per_machine:
            leaving = min(distance, on_machine)
            slowest = max(slowest, self.between.message_us(size_bytes, leaving))
        return slowest * max(1.0, on_machine / self.processors)

    def added_us(self, ranks: int, size_bytes: float) -> float:
        """The time in which all ranks add `size_bytes` to their own."""
        turns = max(1.0, min(ranks, self.ranks_per_machine) / self.processors)
        return turns * size_bytes / self.added_bytes_per_us


def _ring(cluster: Cluster, ranks: int, size: float) -> float:
    part = size / ranks
    exchange = 2 * cluster.step_us(ranks, 1, part)
    return (ranks - 1) * (exchange + cluster.added_us(ranks, part))


def _halving_doubling(cluster: Cluster, ranks: int, size: float) -> float:
    total = 0.0
    for step in range(math.ceil(math.log2(ranks))):
        part = size / 2 ** (step + 1)
        total += 2 * cluster.step_us(ranks, 2**step, part)
        total += cluster.added_us(ranks, part)
    return total


def _tree(cluster: Cluster, ranks: int, size: float) -> float:
    """Of two ranks at a distance of 2**step one sends; 2**step ranks are between them,
    which do nothing then. So no two messages leave a machine at once."""
    steps = math.ceil(math.log2(ranks))
    total = steps * cluster.added_us(ranks, size)
    for step in range(steps):
        far = 2**step >= cluster.ranks_per_machine
        total += 2 * cluster.step_us(ranks if far else 1, 1, size)
    return total


ALGORITHMS: dict[str, Callable[[Cluster, int, float], float]] = {
    "ring": _ring,
    "halving-doubling": _halving_doubling,
    "tree": _tree,
}


def all_reduce_us(
    cluster: Cluster, ranks: int, size_bytes: float, algorithm: str = "best"
) -> float:
    """The time of an all_reduce of `size_bytes` on each rank.

    algorithm: a name of `ALGORITHMS`, or "best": the fastest of them for this size.

    Raises PlanningError for another name, and for no rank.
    """
    if ranks < 1:
        raise PlanningError(f"an all_reduce wants at least one rank, not {ranks}")
    if algorithm != "best" and algorithm not in ALGORITHMS:
        known = ", ".join(ALGORITHMS)
        raise PlanningError(f"no algorithm {algorithm!r}; there are best, {known}")
    if ranks == 1:
        return 0.0
    if algorithm != "best":
        return ALGORITHMS[algorithm](cluster, ranks, size_bytes)
    return min(each(cluster, ranks, size_bytes) for each in ALGORITHMS.values())
