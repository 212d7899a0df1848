"""Measuring every device behind an ordinal, one after the other."""

import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from xpurt import mapping
from xpurt.calibration.measure import curves_of, rates_of
from xpurt.kernels import Calibration, keep_calibration
from xpurt.mapping import PhysicalDevice


def measure_all(report: Callable[[str], object]) -> tuple[Calibration, ...]:
    """See `xpurt.calibrate`."""
    found: list[tuple[PhysicalDevice, Calibration]] = []
    with _one_device_each() as ordinals:
        for index, device in enumerate(ordinals):
            report(f"measuring {device} ...")
            found.append((device, _measured(index, device)))
    for device, calibration in found:
        report(f"{device}: kept in {keep_calibration(calibration)}")
    mapping.install_costs(mapping.current_placement())
    return tuple(calibration for _, calibration in found)


def _measured(index: int, device: PhysicalDevice) -> Calibration:
    rates = rates_of(index, host_reads=device.host_accessible)
    curves = curves_of(index) if device.host_accessible else ()
    today = datetime.date.today().isoformat()
    return Calibration(mapping.identity(device), today, rates, curves)


@contextmanager
def _one_device_each() -> Iterator[list[PhysicalDevice]]:
    """The devices behind xpu:0, xpu:1, ..."""
    ordinals = mapping.current_placement().ordinals
    if all(len(devices) == 1 for devices in ordinals):
        yield [devices[0] for devices in ordinals]
        return
    with mapping.xpu_mapping("explicit") as placement:
        yield [devices[0] for devices in placement.ordinals]
