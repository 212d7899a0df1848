"""The part of `python -m xpurt simulate` about ops that several devices compute
together."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from xpurt.text.markdown_section import head_of, line_of
from xpurt_tools.simulation import SimulatedDevice, co_execute, divided_ops, fleets
from xpurt_tools.simulation import product_forms as forms

LARGE, MIDDLE, SMALL = fleets.CARDS
HALF = replace(MIDDLE, name="half", speed=0.5)
MACHINES: dict[str, list[SimulatedDevice]] = {
    "large, middle": [LARGE, MIDDLE],
    "middle, middle": [MIDDLE, MIDDLE],
    "middle, half": [MIDDLE, HALF],
    "CPU, small": [fleets.CPU, SMALL],
    "CPU, large": [fleets.CPU, LARGE],
    "four alike": [MIDDLE] * 4,
    "one memory": fleets.one_memory(1, 1),
    "one memory, half": fleets.one_memory(1, 0.5),
}
PRODUCT = divided_ops.product(8192, 1024, 1024)
POINTWISE = divided_ops.pointwise(8192, 1024)
SOFTMAX = divided_ops.softmax(8192, 1024)
WORK: dict[str, list[divided_ops.DividedOp]] = {
    "product 2048": [divided_ops.product(2048, 2048, 2048)],
    "batched product": [divided_ops.batched_product(64, 512)],
    "softmax": [divided_ops.softmax(32_768, 4096)],
    "convolution": [divided_ops.convolution(64, 64, 56)],
    "convolution, backward": [divided_ops.convolution_gradients(256, 64, 56)],
    "attention": [divided_ops.attention(128, 1024)],
    "reduction": [divided_ops.reduction(65_536, 4096)],
    "pointwise chain": [divided_ops.pointwise(64 << 20)] * 8,
    "product, pointwise, softmax": [PRODUCT, POINTWISE, SOFTMAX] * 3,
    "convolution, pointwise, backward": [
        divided_ops.convolution(64, 64, 56),
        divided_ops.pointwise(64, 64 * 56 * 56),
        divided_ops.convolution_gradients(64, 64, 56),
    ]
    * 2,
    "gradient of a weight": [divided_ops.product_gradient(1024, 1024, 65_536)],
}
APART, ONE_MEMORY = 0.92, 0.90  # the least efficiency
SEEDS = range(5)

# Fleets, and how often the work of two middle cards each has: a shard keeps its size.
FLEETS: dict[str, Callable[[int], list[SimulatedDevice]]] = {
    "alike": fleets.alike,
    "mixed": fleets.mixed,
    "lopsided": fleets.lopsided,
}
FLEET_SEEDS = range(3)


def fleet_work(times: int) -> dict[str, list[divided_ops.DividedOp]]:
    """Chains with `times` as many rows."""
    rows = 8192 * times
    dense = [
        divided_ops.product(rows, 1024, 1024),
        divided_ops.pointwise(rows, 1024),
        divided_ops.softmax(rows, 1024),
    ]
    images = 256 * times
    convolutions = [
        divided_ops.convolution(images, 64, 56),
        divided_ops.pointwise(images, 64 * 56 * 56),
        divided_ops.convolution_gradients(images, 64, 56),
    ]
    return {
        "product": [divided_ops.product(2048 * times, 2048, 2048)],
        "softmax": [divided_ops.softmax(32_768 * times, 4096)],
        "convolution": [divided_ops.convolution(images, 64, 56)],
        "its gradients": [divided_ops.convolution_gradients(images, 64, 56)],
        "attention": [divided_ops.attention(128 * times, 1024)],
        "reduction": [divided_ops.reduction(65_536 * times, 4096)],
        "pointwise chain": [divided_ops.pointwise((64 << 20) * times)] * 8,
        "product, pointwise, softmax": dense * 3,
        "convolution, pointwise, gradients": convolutions * 2,
        "gradient of a weight": [
            divided_ops.product_gradient(1024, 1024, 65_536 * times)
        ],
    }


def times_of(machine: Sequence[SimulatedDevice]) -> int:
    """The speed of a machine in pairs of middle cards, 1 at least."""
    speed = sum(each.flops_per_us * each.speed for each in machine)
    return max(1, round(speed / (2 * MIDDLE.flops_per_us)))


# (m, n, k), whether the second operand is a weight, whether a divided op has left both
# operands in rows of the inner dimension.
PRODUCTS: dict[str, tuple[tuple[int, int, int], bool, bool]] = {
    "2048 x 2048 x 2048": ((2048, 2048, 2048), False, False),
    "2048 x 2048 x 2048, a weight": ((2048, 2048, 2048), True, False),
    "8192 x 8192 x 8192": ((8192, 8192, 8192), False, False),
    "512 x 512 x 65536": ((512, 512, 65_536), False, False),
    "1024 x 1024 x 65536, a weight's gradient": ((1024, 1024, 65_536), False, True),
}


def co_execution_lines(devices: Sequence[int]) -> Iterator[str]:
    """The tables and the verdicts, in Markdown. devices: of the fleets."""
    yield from head_of(["work", *(f">{name}" for name in MACHINES)])
    least = dict.fromkeys(MACHINES, 1.0)
    for work, chain in WORK.items():
        found = {
            name: _efficiency(chain, machine) for name, machine in MACHINES.items()
        }
        least = {name: min(least[name], found[name]) for name in MACHINES}
        yield line_of([work, *(f"{value:.2f}" for value in found.values())])
    yield ""
    for name, value in least.items():
        limit = ONE_MEMORY if name.startswith("one memory") else APART
        met = "met" if value >= limit else "not met"
        yield f"- {name}: at least {value:.3f}; wanted {limit:.2f}: {met}"
    yield ""
    yield from _fleet_lines([count for count in devices if count > 1])
    yield ""
    yield from _product_lines()


def _fleet_lines(counts: Sequence[int]) -> Iterator[str]:
    yield from head_of(["machine", *(f">{work}" for work in fleet_work(1))])
    least: dict[tuple[str, int], float] = {}
    for fleet, made in FLEETS.items():
        for count in counts:
            machine = made(count)
            found = [
                _efficiency(chain, machine, FLEET_SEEDS)
                for chain in fleet_work(times_of(machine)).values()
            ]
            least[fleet, count] = min(found)
            yield line_of([f"{fleet}, {count}", *(f"{each:.2f}" for each in found)])
    yield ""
    for fleet in FLEETS:
        met = [count for count in counts if least[fleet, count] >= APART]
        others = [
            f"{count}: {least[fleet, count]:.3f}"
            for count in counts
            if count not in met
        ]
        yield (
            f"- {fleet}: at least {APART:.2f} on {_listed(met)} devices"
            + (f"; least on {', on '.join(others)}" if others else "")
        )


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) or "no number of"


def _product_lines() -> Iterator[str]:
    yield from head_of(
        [
            "product, time over one device's",
            ">devices",
            *(f">{f}" for f in forms.FORMS[1:]),
            ">gain of blocks",
        ]
    )
    for name, (sizes, resident, by_rows) in PRODUCTS.items():
        for count in (2, 4, 16):
            us = forms.product_forms(
                *sizes, MIDDLE, count, resident=resident, by_inner_rows=by_rows
            )
            alone = us["one device"]
            cells = [f"{us[form] / alone:.2f}" for form in forms.FORMS[1:]]
            # The run time has all forms but blocks; inner only for such gradients.
            has = ["one device", "rows", *["inner"] * by_rows]
            gain = min(us[form] for form in has) / us["blocks"]
            yield line_of([name, str(count), *cells, f"{max(1.0, gain):.2f}"])


def _efficiency(
    chain: Sequence[divided_ops.DividedOp],
    machine: Sequence[SimulatedDevice],
    seeds: Sequence[int] = SEEDS,
) -> float:
    """The least of several runs, with different noise and wrong predictions."""
    return min(co_execute(chain, machine, seed=seed).efficiency for seed in seeds)
