"""`python -m xpurt calibrate`: measures, shows and draws costs."""

from pathlib import Path

from xpurt.calibration.known import costs_table
from xpurt.calibration.picture import save_plot
from xpurt.calibration.report_html import calibration_page
from xpurt.calibration.run import measure_all
from xpurt.errors import MappingError
from xpurt.kernels import known_costs
from xpurt.mapping import get_xpu_mapping, identity, physical_devices, set_xpu_mapping
from xpurt.reports import check_writable, write_page


def measure_and_show(
    *, show: bool, plot: Path | None, html: Path | None, force: bool
) -> int:
    """See `xpurt.calibration.run_calibrate`."""
    if html is not None:
        check_writable(html)
    if not physical_devices():
        raise MappingError(
            "there is no SYCL device to measure. `python -m xpurt doctor` says what is "
            "missing."
        )
    if not show:
        # Each device by itself, whatever mapping programs will use.
        if get_xpu_mapping() == "AUTO":
            set_xpu_mapping("explicit")
        measure_all(report=print, force=force)
    drawn = 0
    for device in physical_devices():
        print(costs_table(device))
        curves = known_costs(identity(device), device.kind)[1]
        if plot is not None and curves:
            path = plot if drawn == 0 else plot.with_stem(f"{plot.stem}-{drawn}")
            save_plot(path, curves, f"{device}: kernels and PyTorch's CPU kernels")
            print(f"{device}: drawn in {path}")
            drawn += 1
        elif plot is not None:
            print(f"{device}: not drawn, as no class was measured on it")
    if html is not None:
        write_page(html, calibration_page(physical_devices()))
        print(f"written: {html}")
    return 0
