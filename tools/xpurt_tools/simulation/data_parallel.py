"""A step of training with DistributedDataParallel on many ranks, simulated.

The schedule is PyTorch's (S. Li and others, "PyTorch Distributed: Experiences on
Accelerating Data Parallel Training", VLDB 2020): gradients are put into buckets in the
reverse order of the layers. A bucket's all_reduce begins when all ranks have its last
gradient and the all_reduce before has ended. Backward goes on meanwhile.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from xpurt.errors import PlanningError

FIRST_BUCKET_BYTES = 1 << 20
BUCKET_BYTES = 25 << 20


@dataclass(frozen=True, slots=True)
class Layer:
    """parameter_bytes: of its gradients. backward_us: the time from the gradients of
    the layer behind it until its own."""

    parameter_bytes: int
    backward_us: float


@dataclass(frozen=True, slots=True)
class Bucket:
    """layer: the first one with gradients in it, whose backward comes last."""

    size_bytes: int
    layer: int


@dataclass(frozen=True, slots=True)
class Step:
    """compute_us: of one rank alone. exchange_us: all all_reduces. total_us: with what
    of them is not hidden behind backward, and with waits for slower ranks."""

    compute_us: float
    exchange_us: float
    total_us: float

    @property
    def efficiency(self) -> float:
        """The share of the throughput of ranks that would not need each other."""
        return self.compute_us / self.total_us


def buckets_of(
    layers: Sequence[Layer],
    first_bytes: int = FIRST_BUCKET_BYTES,
    other_bytes: int = BUCKET_BYTES,
) -> list[Bucket]:
    """The buckets, in the order in which they are ready. One ends with the layer that
    makes it as large as its limit."""
    made: list[Bucket] = []
    size, limit = 0, first_bytes
    for number in reversed(range(len(layers))):
        size += layers[number].parameter_bytes
        if size >= limit or (number == 0 and size):
            made.append(Bucket(size, number))
            size, limit = 0, other_bytes
    return made


def data_parallel_step(
    layers: Sequence[Layer],
    other_us: float,
    ranks: int,
    all_reduce: Callable[[float], float],
    *,
    overlap: bool = True,
    sharing: float = 1.0,
    noise: float = 0.0,
    seed: int = 0,
) -> Step:
    """Simulates a step of `ranks` ranks, each with a batch of the same size.

    layers: in the order of forward.
    other_us: forward, and the optimizer.
    all_reduce: the microseconds of one of so many bytes on these ranks.
    overlap: whether all_reduces run beside backward. False where they take the
        processors that backward runs on.
    sharing: the ranks of a processor. They compute by turns.
    noise: the standard deviation of the logarithm of a layer's time on a rank.

    Raises PlanningError for no rank, for no layer, and for `sharing` below 1.
    """
    if ranks < 1 or not layers:
        raise PlanningError(
            f"a step wants ranks and layers, not {ranks} and {len(layers)}"
        )
    if not sharing >= 1:
        raise PlanningError(f"a processor has at least one rank, not {sharing}")
    times = np.array([each.backward_us for each in layers])
    factors = np.exp(
        np.random.default_rng(seed).normal(0.0, noise, (ranks, len(layers)))
        if noise
        else np.zeros((1, len(layers)))
    )
    # The time, from the beginning of backward, at which a rank has a layer's gradients.
    ready = np.cumsum((factors * times)[:, ::-1], axis=1)[:, ::-1].max(axis=0)
    ready *= sharing
    free, exchange = 0.0, 0.0
    for bucket in buckets_of(layers):
        took = all_reduce(float(bucket.size_bytes))
        begin = max(free, float(ready[bucket.layer] if overlap else ready[0]))
        free = begin + took
        exchange += took
    compute = other_us + float(times.sum())
    return Step(compute, exchange, sharing * other_us + max(free, float(ready[0])))
