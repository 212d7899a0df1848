"""Measures the costs of ops on this machine, and keeps them for later processes."""

from collections.abc import Callable
from pathlib import Path

from xpurt.arguments import check_callable
from xpurt.kernels import Calibration

__all__ = ["calibrate", "run_calibrate"]


def calibrate(
    report: Callable[[str], object] = lambda text: None,
    *,
    force: bool = False,
) -> tuple[Calibration, ...]:
    """Measures, for each device, from which size on a kernel on its queue finishes
    before PyTorch's CPU kernel. The policy "auto" uses the result from then on. A
    measurement takes about ten seconds per device, and longer on a busy machine.

    The result is kept in the folder of XPURT_CACHE_DIR, in one file per device and
    number of threads; later processes read it. `report` is called with a few lines per
    device.

    The load of the machine is measured, too. If it is too high for a device, the times
    of that device are kept only with `force`, and marked as such. Without `force` the
    times of the other devices are kept, and NoisyError reports the load.

    If an ordinal has several devices, as under AUTO, the mapping is "explicit" during
    the measurement. Raises MappingError if xpu tensors are alive then, and OSError if
    the file can't be written.
    """
    check_callable("calibrate(report=)", report)
    # Imported late: it looks up ops, which takes too long for `import xpurt`.
    from xpurt.calibration.run import measure_all

    return measure_all(report, force=force)


def run_calibrate(
    *, show: bool, plot: Path | None, html: Path | None, force: bool
) -> int:
    """The command: measures all devices, unless it is only to `show` the known costs.
    Draws them to `plot`, and writes a page of them to `html`, if these are given.
    Returns the exit code.

    Raises MappingError without a device, the errors of `calibrate` and of
    `xpurt.calibration.picture.save_plot`, and OSError if `html` can't be written.
    """
    from xpurt.calibration.command import measure_and_show

    return measure_and_show(show=show, plot=plot, html=html, force=force)
