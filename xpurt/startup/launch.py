"""The part of a machine for a rank that torchrun started.

torchrun starts several processes on a machine, and tells each its number in LOCAL_RANK
and their count in LOCAL_WORLD_SIZE. Without more, each would use all processors, and
they would slow each other down. So a rank takes its share of the processors, by its
affinity, which the CPU driver and PyTorch follow, unless its mapping decides alone.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from xpurt.config import names_explicit

# Whether the mapping that the program has set takes a part; None if it has set none.
_takes_part: bool | None = None


@dataclass(frozen=True, slots=True)
class LocalRank:
    """One of the processes of a launch on this machine.

    number: from 0. count: how many there are, at least 2.
    """

    number: int
    count: int


def local_rank(environment: Mapping[str, str] = os.environ) -> LocalRank | None:
    """The rank that this process is; None if it is alone."""
    try:
        number = int(environment["LOCAL_RANK"])
        count = int(environment["LOCAL_WORLD_SIZE"])
    except (KeyError, ValueError):
        return None
    if count < 2 or not 0 <= number < count:
        return None
    return LocalRank(number, count)


def processors_of(rank: LocalRank, nodes: Sequence[Sequence[int]]) -> list[int]:
    """The processors for a rank.

    nodes: the processors of each NUMA node that the launch may use. Ranks get whole
    nodes if these divide among them, else equal parts, and share single processors if
    there are more ranks than processors.
    """
    if len(nodes) % rank.count == 0:
        part = len(nodes) // rank.count
        mine = nodes[rank.number * part :][:part]
        return [each for node in mine for each in node]
    everything = [each for node in nodes for each in node]
    size = len(everything)
    if rank.count > size:
        return [everything[rank.number % size]]
    begin, end = (size * n // rank.count for n in (rank.number, rank.number + 1))
    return everything[begin:end]


def usable_nodes(system: Path = Path("/sys/devices/system/node")) -> list[list[int]]:
    """The processors that this process may use, by NUMA node."""
    usable = os.sched_getaffinity(0)
    lists = sorted(system.glob("node*/cpulist"), key=lambda p: (len(str(p)), str(p)))
    nodes = [sorted(usable & _numbers(each.read_text())) for each in lists]
    found = [node for node in nodes if node]
    return found or [sorted(usable)]


def _numbers(text: str) -> set[int]:
    """The numbers in a list of Linux: "0-3,8"."""
    numbers: set[int] = set()
    for each in text.strip().split(","):
        if each:
            first, _, last = each.partition("-")
            numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def decide_part(takes: bool) -> None:
    """Whether the program's mapping takes the rank's part, or all of the machine. It
    counts until the CPU driver is loaded."""
    global _takes_part
    _takes_part = takes


def take_processors() -> None:
    """Limits this process to its part, if torchrun started it.

    Called before the CPU driver is loaded. PyTorch gets a thread for each processor:
    torchrun has set OMP_NUM_THREADS=1 for every rank. Does nothing if the mapping is
    "explicit", or if something else, such as a launcher that binds its processes, has
    set an affinity.
    """
    rank = local_rank()
    takes = not names_explicit() if _takes_part is None else _takes_part
    bound = len(os.sched_getaffinity(0)) < (os.cpu_count() or 1)
    if rank is None or not takes or bound:
        return
    mine = processors_of(rank, usable_nodes())
    os.sched_setaffinity(0, mine)
    torch.set_num_threads(len(mine))
