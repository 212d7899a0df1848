"""`python -m xpurt simulate --ranks`: training in parallel on 8 to 4,096 ranks."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from xpurt.reports import describe_machine
from xpurt.text.markdown_section import Section, head_of, line_of
from xpurt_tools.bench import MODELS, measured_layers
from xpurt_tools.simulation import (
    ALGORITHMS,
    Cluster,
    Layer,
    Link,
    all_reduce_us,
    data_parallel_step,
)

RANKS = (8, 64, 512, 4096)
TABLE = Section(
    "<!-- simulated ranks: begin, written by the command -->",
    "<!-- simulated ranks: end -->",
)
# Round numbers as in data sheets. A rank is a processor of this machine in all of them.
CLUSTERS = (
    Cluster("10 Gb/s Ethernet", Link(5, 5e3), Link(30, 1.25e3), 8, 5e3),
    Cluster("100 Gb/s RDMA", Link(2, 10e3), Link(3, 12.5e3), 8, 10e3),
    Cluster("400 Gb/s RDMA", Link(1, 50e3), Link(2, 50e3), 8, 50e3),
)
NOISE = 0.05


def run_simulate_ranks(markdown: Path | None) -> int:
    """Measures a step of each network on this machine, and prints the table, or writes
    it into a page. Raises BadMarkers and OSError."""
    TABLE.write(table(), markdown)
    return 0


def table() -> Iterator[str]:
    machine = describe_machine()
    yield f"{machine.date}: {machine.sentence}."
    yield ""
    ranks = [f">{count:,} ranks" for count in RANKS]
    yield from head_of(["network", "gradients", "step", "links", *ranks])
    for name, make in MODELS.items():
        torch.manual_seed(0)
        layers, other_us = measured_layers(make())
        size = sum(each.parameter_bytes for each in layers)
        alone = other_us + sum(each.backward_us for each in layers)
        for cluster in CLUSTERS:
            cells = [_cell(layers, other_us, cluster, count) for count in RANKS]
            of_network = [name, f"{size / 1e6:.0f} MB", f"{alone / 1e3:.0f} ms"]
            yield line_of([*of_network, cluster.name, *cells])


def _cell(
    layers: Sequence[Layer], other_us: float, cluster: Cluster, ranks: int
) -> str:
    """The efficiency, and the algorithm that is best for the largest bucket."""
    step = data_parallel_step(
        layers,
        other_us,
        ranks,
        lambda size: all_reduce_us(cluster, ranks, size),
        noise=NOISE,
    )
    size = sum(each.parameter_bytes for each in layers)
    best = min(ALGORITHMS, key=lambda each: all_reduce_us(cluster, ranks, size, each))
    return f"{step.efficiency:.2f} ({best})"
