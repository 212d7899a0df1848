"""Measures every device, one after the other, each behind an ordinal of its own."""

import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from xpurt import mapping
from xpurt.calibration.measure import curves_of, rates_of
from xpurt.calibration.noise import Noise, Watch
from xpurt.errors import NoisyError
from xpurt.kernels import Calibration, keep_calibration
from xpurt.mapping import PhysicalDevice


def measure_all(
    report: Callable[[str], object], *, force: bool
) -> tuple[Calibration, ...]:
    """See `xpurt.calibrate`."""
    found: list[tuple[PhysicalDevice, Calibration, Noise]] = []
    with _one_device_each() as ordinals:
        for index, device in enumerate(ordinals):
            report(f"measuring {device} ...")
            calibration, noise = _measured(index, device)
            report(f"{device}: {noise}")
            found.append((device, calibration, noise))
    refused: list[str] = []
    kept: list[Calibration] = []
    for device, calibration, noise in found:
        faults = noise.faults()
        if faults and not force:
            refused.append(f"{device}: {'; '.join(faults)}")
            continue
        if faults:
            busy = f"{calibration.measured}, while the machine was busy ({noise})"
            calibration = replace(calibration, measured=busy)
        report(f"{device}: kept in {keep_calibration(calibration)}")
        kept.append(calibration)
    mapping.install_costs(mapping.current_placement())
    if refused:
        raise NoisyError(
            "a calibration was requested, and the machine is too busy for its times to be "
            f"kept. {'. '.join(refused)}. What was known before stays. End what else "
            "runs and calibrate again, or keep such times all the same: "
            "`python -m xpurt calibrate --force`, xpurt.calibrate(force=True)."
        )
    return tuple(kept)


def _measured(index: int, device: PhysicalDevice) -> tuple[Calibration, Noise]:
    with Watch() as watch:
        watch.look()
        rates = rates_of(index, watch, host_reads=device.host_accessible)
        curves = curves_of(index, watch) if device.host_accessible else ()
    today = datetime.date.today().isoformat()
    calibration = Calibration(mapping.identity(device), today, rates, curves)
    return calibration, watch.noise()


@contextmanager
def _one_device_each() -> Iterator[list[PhysicalDevice]]:
    """The devices behind xpu:0, xpu:1, ..."""
    ordinals = mapping.current_placement().ordinals
    if all(len(devices) == 1 for devices in ordinals):
        yield [devices[0] for devices in ordinals]
        return
    with mapping.xpu_mapping("explicit") as placement:
        yield [devices[0] for devices in placement.ordinals]
