"""Measures what ops cost on this machine, and keeps it for all later processes."""

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
    """Measures, for each device, when a kernel on its queue finishes before PyTorch's
    CPU kernel, and goes by that from now on. It takes some ten seconds per device,
    and longer on a busy machine.

    The result is kept in the folder of XPURT_CACHE_DIR, a file per device and number of
    threads, and later processes read it. `report` is called with some lines per device.

    How busy the machine is meanwhile is measured as well. What is measured on one that
    is too busy is kept only by `force`, with a note of that; else the others are kept,
    and NoisyError says what was found.

    Where one ordinal has several devices, as under AUTO, the mapping is "explicit" while
    this runs. Raises MappingError if xpu tensors are alive then, and OSError if the
    file can't be written.
    """
    check_callable("calibrate(report=)", report)
    # Looks up ops, which `import xpurt` has no time for.
    from xpurt.calibration.run import measure_all

    return measure_all(report, force=force)


def run_calibrate(
    *, show: bool, plot: Path | None, html: Path | None, force: bool
) -> int:
    """The command: measures all devices unless it is only to `show` what is known, draws
    that to `plot`, and writes a page of it to `html`, if these are given. Returns the
    exit code.

    Raises MappingError without a device, what `calibrate` raises, what
    `xpurt.calibration.picture.save_plot` does, and OSError where `html` can't be
    written.
    """
    from xpurt.calibration.command import measure_and_show

    return measure_and_show(show=show, plot=plot, html=html, force=force)
