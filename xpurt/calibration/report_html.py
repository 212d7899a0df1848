"""The known costs of each device, as one HTML page."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from xpurt import mapping
from xpurt.calibration.known import elements_text, largest_text, sources
from xpurt.calibration.picture import labels_of, panels_of, ratios
from xpurt.kernels import Curve, known_costs
from xpurt.mapping import PhysicalDevice
from xpurt.reports import (
    Axis,
    Cell,
    Chart,
    Column,
    DataTable,
    Figure,
    Mark,
    Panel,
    Row,
    describe_machine,
    render_page,
)


@dataclass(frozen=True, slots=True)
class _Section:
    """One device. lines: the source of its costs, and its rates."""

    name: str
    lines: list[str]
    crossovers: Chart
    table: DataTable


def calibration_page(devices: Sequence[PhysicalDevice]) -> str:
    curves: list[Curve] = []
    sections = []
    calibrated = 0
    for index, device in enumerate(devices):
        kept, known = known_costs(mapping.identity(device), device.kind)
        calibrated += kept is not None
        curves += known
        sections.append(
            _Section(
                str(device),
                sources(kept, known),
                crossovers_chart(known),
                _table(f"table-{index}", known),
            )
        )
    found = [c for c in (curve.crossover() for curve in curves) if c is not None]
    figures = [
        Figure(f"{calibrated} of {len(devices)}", "devices are calibrated"),
        Figure(f"{len(curves):,}", "classes of ops in a type and layout"),
        Figure(f"{len(found):,}", "of them have a size from which a kernel wins"),
    ]
    if found:
        figures.append(
            Figure(f"{median(found):,.0f}", "elements: the median of these sizes")
        )
    return render_page(
        "calibration",
        "Calibration",
        figures,
        describe_machine(devices),
        devices=sections,
    )


def crossovers_chart(curves: Sequence[Curve]) -> Chart:
    """One panel per kind of op, one line per curve: the faster tier at each size."""
    sizes = [point.elements for curve in curves for point in curve.points] or [1.0]
    axis = Axis(
        min(sizes) / 1.5,
        max(sizes) * 1.5,
        "elements (of products: multiply-adds)",
        log=True,
        tick_text=_short,
    )
    return Chart(
        axis,
        tuple(
            Panel(kind, tuple(_rows(some, axis)))
            for kind, some in panels_of(curves).items()
        ),
        "the faster tier by number of elements",
        legend=(
            ("sycl", "kernel on the queue is faster"),
            ("native", "PyTorch's CPU kernel is faster"),
        ),
        empty="No class of ops was measured on this device.",
    )


def _rows(curves: Sequence[Curve], axis: Axis) -> list[Row]:
    return [
        Row(label, tuple(_marks(label, curve, axis)), f"{ratios(curve)[-1]:.2f}×")
        for label, curve in zip(labels_of(curves), curves, strict=True)
    ]


def _marks(label: str, curve: Curve, axis: Axis) -> list[Mark]:
    """One bar per range of sizes on which the same tier is faster."""
    marks: list[Mark] = []
    for (low, high), kernel in stretches(curve):
        faster = "the kernel" if kernel else "PyTorch's CPU kernel"
        about = f"{label}: {faster} from {_short(low)} to {_short(high)} elements"
        color = "sycl" if kernel else "native"
        marks.append(Mark("bar", color, axis.at(low), axis.at(high), about))
    return marks


def stretches(curve: Curve) -> list[tuple[tuple[float, float], bool]]:
    """Ranges of elements, in order, each with True if the kernel is faster on it.

    Between points the logarithms of times are interpolated linearly.
    """
    points = curve.points
    logs = [math.log(ratio) for ratio in ratios(curve)]
    start, kernel = points[0].elements, logs[0] > 0
    found = []
    for (a, b), (y, next_y) in zip(
        itertools.pairwise(points), itertools.pairwise(logs), strict=True
    ):
        if (next_y > 0) == kernel:
            continue
        share = y / (y - next_y)
        end = a.elements * (b.elements / a.elements) ** share
        if end > start:
            found.append(((start, end), kernel))
        start, kernel = end, not kernel
    last = points[-1].elements
    # A range of a single size is widened so that it is visible.
    found.append(((start, max(last, start * 1.3)), kernel))
    return found


def _table(name: str, curves: Sequence[Curve]) -> DataTable:
    columns = (
        Column("class"),
        Column("type", "choice"),
        Column("layout", "choice"),
        Column("kernel from", "number"),
        Column("kernel/native, largest", "number"),
        Column("sizes measured", "number"),
    )
    lines = (
        (
            curve.cost_class,
            curve.letter,
            curve.layout,
            Cell(elements_text(crossover), value=crossover),
            largest_text(curve),
            str(len(curve.points)),
        )
        for curve, crossover in ((curve, curve.crossover()) for curve in curves)
    )
    return DataTable.of(name, columns, lines, "No class of ops was measured.")


def _short(elements: float) -> str:
    """1, 10k, 1.5M."""
    for factor, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if elements >= factor:
            return f"{elements / factor:.3g}{unit}"
    return f"{elements:.3g}"
