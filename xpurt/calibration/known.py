"""The known costs of a device, as text."""

from xpurt import mapping
from xpurt.kernels import Calibration, Curve, known_costs, shipped
from xpurt.mapping import PhysicalDevice
from xpurt.text.table import table


def costs_table(device: PhysicalDevice) -> str:
    """A text: the source of the device's costs, its rates, and the crossovers, which
    are the numbers of elements from which on a kernel is chosen."""
    kept, curves = known_costs(mapping.identity(device), device.kind)
    source, *rates = sources(kept, curves)
    lines = [f"{device}: {source}", *rates]
    if curves:
        cells = (
            (
                c.cost_class,
                c.letter,
                c.layout,
                elements_text(c.crossover()),
                largest_text(c),
            )
            for c in curves
        )
        headings = (
            "class",
            "type",
            "layout",
            ">kernel from",
            ">kernel/native, largest",
        )
        lines.append(table(headings, cells))
    return "\n".join(lines)


def sources(kept: Calibration | None, curves: tuple[Curve, ...]) -> list[str]:
    """The source of the costs, and the measured rates, in one line each."""
    if kept is not None:
        return [f"measured on {kept.measured}", *_rates(kept)]
    if curves:
        return [
            "not calibrated; xpurt goes by the costs that it comes with "
            f"({shipped().measured})"
        ]
    return ["not calibrated"]


def _rates(calibration: Calibration) -> list[str]:
    rates = calibration.rates
    threads = calibration.identity.threads
    lines = [
        f"a kernel: {rates.launch_us:.1f} us, {rates.bytes_per_us / 1e3:.1f} GB/s, "
        f"{rates.flops_per_us / 1e3:.0f} GFLOP/s; a copy from the host: "
        f"{rates.copy_launch_us:.1f} us, {rates.copy_bytes_per_us / 1e3:.1f} GB/s"
    ]
    if rates.native_call_us:
        lines.append(
            f"PyTorch's CPU kernel, {threads} threads: {rates.native_call_us:.1f} us, "
            f"{rates.native_bytes_per_us / 1e3:.1f} GB/s, "
            f"{rates.native_flops_per_us / 1e3:.0f} GFLOP/s"
        )
    return lines


def elements_text(crossover: float | None) -> str:
    return "never" if crossover is None else f"{crossover:,.0f}"


def largest_text(curve: Curve) -> str:
    last = curve.points[-1]
    return f"{last.kernel_us / last.native_us:.2f} at {last.elements:,.0f}"
