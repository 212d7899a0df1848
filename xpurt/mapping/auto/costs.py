"""The cost of an op on a device: from its calibration, or an estimate without
measurements. The extension predicts the time of an op on a device by the curve of its
class, if one was measured there, else as

    launch + max(bytes / bandwidth, flops / rate) + copies of what is not valid there

(the roofline of Williams, Waterman and Patterson, 2009, with launch and transfer
added), and corrects it by times of the running program
(csrc/schedule/planning/learned_cost.h).
"""

from dataclasses import astuple, dataclass, replace
from typing import Final

from xpurt import _C, kernels
from xpurt.mapping.devices import PhysicalDevice
from xpurt.mapping.resolve import Placement
from xpurt.mapping.spec import Kind
from xpurt.startup.accelerator import AMD, INTEL, NVIDIA


@dataclass(frozen=True, slots=True)
class DeviceCost:
    """Times in microseconds, rates per microsecond.

    launch_us: submitting an empty kernel and waiting for it.
    bytes_per_us: memory that a kernel reads and writes.
    flops_per_us: float32 operations.
    copy_launch_us: the fixed part of one copy from or to the home device.
    copy_bytes_per_us: the rate of such a copy.
    """

    launch_us: float
    bytes_per_us: float
    flops_per_us: float
    copy_launch_us: float
    copy_bytes_per_us: float

    def row(self) -> tuple[float, float, float, float, float]:
        """The five numbers, in the order that the extension expects."""
        return astuple(self)


# Note [Costs that nothing has measured]
# A GPU's rates follow from what its driver says: each lane of a compute unit starts an
# instruction per clock. So `flops_per_us` is lanes * units * clock, half of the peak that
# vendors give, which counts a multiply-add as two. Kernels do not reach the peak, and
# `flops` of a row counts instructions. No driver tells the memory's rate: it is the
# peak divided by the balance of a machine (McCalpin, 1995), operations per byte. By their
# data sheets GPUs have 12 to 82 of them (tests/mapping/test_costs.py).
#
# A device whose driver does not tell all of this, and a CPU, whose driver tells no clock,
# has rates per unit: a core of a CPU with its share of the memory's rate. Of an accelerator
# less is known: what builds OpenCL C while a program runs, as the emulation of an FPGA
# does, computes on processors (measured: 9,200 bytes and 64,000 operations per unit, 30 us
# to launch, 22 us to copy; Intel Xeon with AVX-512, 2026-11-29).
_OPERATIONS_PER_BYTE: Final = 33.0
# Of a multiprocessor, or of AMD's compute unit. Intel's GPUs have vector engines as units,
# as wide as their smallest sub-group.
_LANES: Final = {NVIDIA: 128, AMD: 64}
_NOT_CALIBRATED: Final[dict[Kind, DeviceCost]] = {
    "cpu": DeviceCost(10.0, 5_000.0, 50_000.0, 5.0, 5_000.0),
    "gpu": DeviceCost(15.0, 10_000.0, 100_000.0, 15.0, 8_000.0),
    "accelerator": DeviceCost(30.0, 5_000.0, 50_000.0, 20.0, 8_000.0),
}


def install_costs(placement: Placement) -> None:
    """Passes the known costs of the placement's devices to the extension."""
    for index, devices in enumerate(placement.ordinals):
        rates = [
            kernels.apply_costs(index, position, identity(device), device.kind)
            for position, device in enumerate(devices)
        ]
        if len(devices) > 1:
            rows = [
                device_cost(*each).row() for each in zip(devices, rates, strict=True)
            ]
            _C.set_device_costs(index, rows)
            _C.use_cost_curves(index)


def identity(device: PhysicalDevice) -> kernels.Identity:
    """The properties on which measurements of the device depend."""
    return kernels.identity_of(
        device.name, device.platform, device.driver_version, device.compute_units
    )


def device_cost(
    device: PhysicalDevice, rates: kernels.Rates | None = None
) -> DeviceCost:
    """The costs from a calibration's rates; without one, an estimate by
    Note [Costs that nothing has measured]."""
    if rates is not None:
        return DeviceCost(
            launch_us=rates.launch_us,
            bytes_per_us=rates.bytes_per_us,
            flops_per_us=rates.flops_per_us,
            copy_launch_us=rates.copy_launch_us,
            copy_bytes_per_us=rates.copy_bytes_per_us,
        )
    units = float(max(device.compute_units, 1))
    cost = _NOT_CALIBRATED[device.kind]
    if rate := units * device.clock_mhz * _lanes(device):
        memory = 2 * rate / _OPERATIONS_PER_BYTE
        return replace(cost, bytes_per_us=memory, flops_per_us=rate)
    return replace(
        cost,
        bytes_per_us=cost.bytes_per_us * units,
        flops_per_us=cost.flops_per_us * units,
    )


def _lanes(device: PhysicalDevice) -> int:
    """The float32 lanes of a GPU's compute unit; 0 if that is not known."""
    if device.kind != "gpu":
        return 0
    if device.vendor_id == INTEL:
        return min(device.sub_group_sizes, default=0)
    return _LANES.get(device.vendor_id, 0)
