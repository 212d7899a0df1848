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


# Bytes and operations are per compute unit: a core of a CPU with its share of the memory's
# bandwidth, a sub-slice or multiprocessor of a GPU. Orders of magnitude, not measurements.
# Of an accelerator less is known: what builds OpenCL C while a program runs, as the
# emulation of an FPGA does, computes on processors (measured: 9,200 and 64,000 per unit,
# 30 us to launch, 22 us to copy; Intel Xeon with AVX-512, 2026-11-29).
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
    """The costs from a calibration's rates; without one, an estimate from the kind and
    the compute units of the device."""
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
    return replace(
        cost,
        bytes_per_us=cost.bytes_per_us * units,
        flops_per_us=cost.flops_per_us * units,
    )
