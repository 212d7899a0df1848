"""`python -m xpurt simulate --ranks --check`: the simulation of ranks against real ones.

Ranks start on this machine and exchange over 127.0.0.1. The latency and the bandwidth
follow from two sizes of all_reduce on two ranks, and the layers' times from two ranks
that compute without an exchange. All else is predicted. More ranks than processors take
turns, in the exchange and in the computation.
"""

import os
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path

import xpurt
from xpurt.reports import describe_machine
from xpurt.text.markdown_section import Section, head_of, line_of
from xpurt_tools.bench import RankGroup
from xpurt_tools.simulation import (
    Cluster,
    Layer,
    Link,
    all_reduce_us,
    data_parallel_step,
)

RANKS = (2, 4, 8)
SIZES = {
    "1 KB": 1 << 10,
    "64 KB": 1 << 16,
    "1 MB": 1 << 20,
    "16 MB": 1 << 24,
    "64 MB": 1 << 26,
}
# The two sizes that the links follow from.
LATENCY_OF, BANDWIDTH_OF = "1 KB", "16 MB"
NETWORKS = ("MLP", "ResNet-18", "GPT")
MAPPING = "CPU"
ROUNDS = 7
ROUND_S = 0.1  # of calls, about
MOST_CALLS = 200
TABLE = Section(
    "<!-- ranks here: begin, written by the command -->",
    "<!-- ranks here: end -->",
)


def run_check_ranks(markdown: Path | None) -> int:
    """Starts the ranks, and prints the table, or writes it into a page. Raises
    BadMarkers, OSError, and RuntimeError if a rank ends."""
    TABLE.write(table(), markdown)
    return 0


def table() -> Iterator[str]:
    with xpurt.xpu_mapping(MAPPING):
        machine = describe_machine()
    processors = len(os.sched_getaffinity(0))
    measured: dict[int, dict[str, float]] = {}
    cluster = Cluster("", Link(0, 1), Link(0, 1), max(RANKS))
    layers: dict[str, tuple[list[Layer], float]] = {}
    for ranks in RANKS:
        group = RankGroup(ranks, MAPPING)
        try:
            measured[ranks] = measured_us(group)
            if ranks == min(RANKS):
                cluster = fitted(measured[ranks], ranks, processors)
                layers = {each: layers_of(group, each) for each in NETWORKS}
        finally:
            group.close()
    yield f"{machine.date}: {machine.sentence}."
    yield ""
    link = cluster.inside
    yield (
        f"A message takes {link.latency_us:,.0f} us and {link.bytes_per_us / 1e3:.2f} "
        f"GB/s, by the all_reduces of {LATENCY_OF} and {BANDWIDTH_OF} on "
        f"{min(RANKS)} ranks. Each cell: measured, predicted, and their ratio."
    )
    yield ""
    yield from head_of(["", *(f">{ranks} ranks" for ranks in RANKS)])
    predicted = {
        ranks: predicted_us(cluster, layers, ranks, processors) for ranks in RANKS
    }
    for name in measured[min(RANKS)]:
        cells = [_cell(measured[n][name], predicted[n][name]) for n in RANKS]
        yield line_of([name, *cells])
    yield ""
    yield from _summary(measured, predicted)


def measured_us(group: RankGroup) -> dict[str, float]:
    """Microseconds of each all_reduce, and of a step of DDP with each network."""
    work = {f"all_reduce {name}": f"all_reduce {size}" for name, size in SIZES.items()}
    work |= {f"DDP {name}": f"DDP {name}" for name in NETWORKS}
    return {name: _least_us(group, each) for name, each in work.items()}


def _least_us(group: RankGroup, work: str) -> float:
    """Of several rounds: other programs only add to it. The slowest rank counts."""
    once = max(group.run(work))
    calls = int(min(MOST_CALLS, max(1, ROUND_S / once)))
    rounds = [max(group.run(work, calls=calls)) for _ in range(ROUNDS)]
    return min(rounds) / calls * 1e6


def layers_of(group: RankGroup, network: str) -> tuple[list[Layer], float]:
    """The layers of a network, measured on all ranks at once: they share the memory's
    bandwidth. The rank that took the median time counts."""
    found = [
        ([Layer(*each) for each in layers], float(other_us))
        for layers, other_us in group.ask(f"layers {network}")
    ]
    return sorted(found, key=_step_us)[len(found) // 2]


def _step_us(found: tuple[list[Layer], float]) -> float:
    layers, other_us = found
    return other_us + sum(each.backward_us for each in layers)


def fitted(measured: Mapping[str, float], ranks: int, processors: int) -> Cluster:
    """The links of this machine. Of n bytes a ring of p ranks takes 2 (p - 1) messages
    of n / p bytes; the time of additions is part of the bandwidth."""
    messages = 2 * (ranks - 1)
    latency_us = measured[f"all_reduce {LATENCY_OF}"] / messages
    large_us = measured[f"all_reduce {BANDWIDTH_OF}"] / messages - latency_us
    link = Link(latency_us, SIZES[BANDWIDTH_OF] / ranks / max(large_us, 1e-3))
    return Cluster("127.0.0.1", link, link, max(RANKS), processors=processors)


def predicted_us(
    cluster: Cluster,
    layers: Mapping[str, tuple[list[Layer], float]],
    ranks: int,
    processors: int,
) -> dict[str, float]:
    """What `measured_us` is to find. Exchanges take the processors that backward runs
    on, so nothing is hidden."""

    def ring_us(size_bytes: float) -> float:
        return all_reduce_us(cluster, ranks, size_bytes, "ring")

    found = {f"all_reduce {name}": ring_us(size) for name, size in SIZES.items()}
    for name, (each, other_us) in layers.items():
        step = data_parallel_step(
            each,
            other_us,
            ranks,
            ring_us,
            overlap=False,
            sharing=max(1.0, ranks / processors),
        )
        found[f"DDP {name}"] = step.total_us
    return found


def _cell(measured_us: float, predicted_us: float) -> str:
    ratio = measured_us / predicted_us
    if measured_us < 1e4:
        return f"{measured_us:,.0f} us, {predicted_us:,.0f} us, {ratio:.2f}"
    return f"{measured_us / 1e3:,.0f} ms, {predicted_us / 1e3:,.0f} ms, {ratio:.2f}"


def _summary(
    measured: Mapping[int, Mapping[str, float]],
    predicted: Mapping[int, Mapping[str, float]],
) -> Iterator[str]:
    """The geometric means of the ratios that nothing was fitted to."""
    fit = {f"all_reduce {each}" for each in (LATENCY_OF, BANDWIDTH_OF)}
    for kind in ("all_reduce", "DDP"):
        for ranks in RANKS:
            ratios = [
                value / predicted[ranks][name]
                for name, value in measured[ranks].items()
                if name.startswith(kind) and (ranks > min(RANKS) or name not in fit)
            ]
            yield (
                f"- {kind} on {ranks} ranks: measured over predicted "
                f"{statistics.geometric_mean(ratios):.2f}, "
                f"{min(ratios):.2f} to {max(ratios):.2f}"
            )
