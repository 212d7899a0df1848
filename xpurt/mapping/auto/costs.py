"""What an op costs on a device, as far as it can be told without measuring.

A shipped table: learned costs replace its numbers behind the same `DeviceCost`. The
extension predicts the time of an op on a device as

    launch + max(bytes / bandwidth, flops / rate) + copies of what is not valid there

(the roofline of Williams, Waterman and Patterson, 2009, with launch and transfer
added).
"""

from dataclasses import astuple, dataclass

from xpurt.mapping.devices import PhysicalDevice


@dataclass(frozen=True, slots=True)
class DeviceCost:
    """Times in microseconds, rates per microsecond.

    launch_us: submitting an empty kernel and waiting for it.
    bytes_per_us: memory that a kernel reads and writes.
    flops_per_us: float32 operations.
    copy_launch_us: one copy from or to the home device.
    copy_bytes_per_us: such a copy.
    """

    launch_us: float
    bytes_per_us: float
    flops_per_us: float
    copy_launch_us: float
    copy_bytes_per_us: float

    def row(self) -> tuple[float, float, float, float, float]:
        """As the extension takes it."""
        return astuple(self)


# Of one compute unit: a core of a CPU with its share of the memory's bandwidth, a
# sub-slice or multiprocessor of a GPU. Orders of magnitude, not measurements.
_CPU_BYTES_PER_US = 5_000.0
_CPU_FLOPS_PER_US = 50_000.0
_GPU_BYTES_PER_US = 10_000.0
_GPU_FLOPS_PER_US = 100_000.0

_PCI_BYTES_PER_US = 8_000.0
_HOST_BYTES_PER_US = 5_000.0


def device_cost(device: PhysicalDevice) -> DeviceCost:
    """The shipped costs of a device, from its kind and its compute units."""
    units = float(max(device.compute_units, 1))
    if device.kind == "cpu":
        return DeviceCost(
            launch_us=10.0,
            bytes_per_us=_CPU_BYTES_PER_US * units,
            flops_per_us=_CPU_FLOPS_PER_US * units,
            copy_launch_us=5.0,
            copy_bytes_per_us=_HOST_BYTES_PER_US,
        )
    return DeviceCost(
        launch_us=15.0,
        bytes_per_us=_GPU_BYTES_PER_US * units,
        flops_per_us=_GPU_FLOPS_PER_US * units,
        copy_launch_us=15.0,
        copy_bytes_per_us=_PCI_BYTES_PER_US,
    )
