"""Collectives and training on two ranks of one processor each."""

import torch

from xpurt.bench.ranks import group_of_two
from xpurt.bench.row import LARGE, Row, Suite, Work

# By size: how often a call repeats the collective, so that the request to the ranks
# does not count, and the largest ratio to gloo on CPU tensors.
ALL_REDUCES = {
    "1 KB": (1 << 10, 100, 1.5),
    "64 KB": (1 << 16, 100, 1.5),
    "1 MB": (1 << 20, 30, 1.15),
    "16 MB": (1 << 24, 3, 1.15),
    "64 MB": (1 << 26, 1, 1.05),
}
# Two ranks are due 0.85 of the throughput of two processors that train alone.
DDP_AT_MOST = 1 / 0.85


def _work(work: str, device: torch.device, calls: int, elements: int) -> Work:
    ranks = group_of_two()
    return Work(lambda: ranks.run(work, device.type, calls), elements=elements)


def _all_reduce(size: str) -> Row:
    size_bytes, calls, at_most = ALL_REDUCES[size]
    name = f"all_reduce {size_bytes}"
    return Row(
        f"all_reduce {size}, {calls} times",
        lambda device: _work(name, device, calls, size_bytes // 4),
        at_most=at_most,
    )


def _ddp(model: str) -> Row:
    return Row(
        f"DDP {model}, beside one rank alone",
        lambda device: _work(f"DDP {model}", device, 1, LARGE),
        beside=lambda device: _work(f"alone {model}", device, 1, LARGE),
        at_most=DDP_AT_MOST,
    )


DISTRIBUTED = Suite(
    "distributed",
    "two ranks of one processor each: all_reduce against gloo on CPU tensors, steps of "
    "DDP against the same step of one rank without others",
    target=1.2,
    rows=(*map(_all_reduce, ALL_REDUCES), *map(_ddp, ("ResNet-18", "GPT"))),
    only_by_name=True,
)
