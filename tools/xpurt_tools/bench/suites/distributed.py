"""Collectives and training on two ranks of one processor each."""

import torch

import xpurt
from xpurt.mapping import current_placement
from xpurt_tools.bench.ranks import RankGroup, group_of_two
from xpurt_tools.bench.row import LARGE, Row, Suite, Unavailable, Work

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
PEAK_AT_MOST = 1.05


def _work(
    work: str, device: torch.device, calls: int, elements: int, mapping: str
) -> Work:
    ranks = group_of_two(mapping)
    return Work(lambda: ranks.run(work, device.type, calls), elements=elements)


def _titled(name: str, mapping: str) -> str:
    return f"{mapping}: {name}" if mapping else name


def _all_reduce(size: str, mapping: str = "") -> Row:
    size_bytes, calls, at_most = ALL_REDUCES[size]
    name = f"all_reduce {size_bytes}"
    return Row(
        _titled(f"all_reduce {size}, {calls} times", mapping),
        lambda device: _work(name, device, calls, size_bytes // 4, mapping),
        at_most=at_most,
    )


def _ddp(model: str, mapping: str = "") -> Row:
    return Row(
        _titled(f"DDP {model}, beside one rank alone", mapping),
        lambda device: _work(f"DDP {model}", device, 1, LARGE, mapping),
        beside=lambda device: _work(f"alone {model}", device, 1, LARGE, mapping),
        at_most=DDP_AT_MOST,
    )


def _peak(device: torch.device) -> Work:
    """Of the rank that takes most. The ranks have not held other tensors before."""

    if any(each.kind != "cpu" for each in current_placement().ordinals[0]):
        raise Unavailable("a GPU's memory is not that of the process")

    def call() -> int:
        ranks = RankGroup(2, xpurt.get_xpu_mapping())
        try:
            return max(map(int, ranks.ask("peak FSDP2", device.type)))
        finally:
            ranks.close()

    return Work(call, elements=LARGE)


DISTRIBUTED = Suite(
    "distributed",
    "two ranks of one processor each: all_reduce against gloo on CPU tensors, steps of "
    "DDP against the same step of one rank without others, the peak of a rank's memory",
    target=1.2,
    rows=(
        *map(_all_reduce, ALL_REDUCES),
        *map(_ddp, ("ResNet-18", "GPT")),
        *(_all_reduce(size, "AUTO") for size in ("1 KB", "1 MB", "16 MB")),
        _ddp("GPT", "AUTO"),
        Row("FSDP2 GPT, peak of memory", _peak, at_most=PEAK_AT_MOST, in_bytes=True),
    ),
    only_by_name=True,
)
