"""Measuring a device, keeping it, showing it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from own_process import output

import xpurt
from xpurt import _C, kernels, mapping
from xpurt.calibration import probe_ops
from xpurt.command_line import cli


@pytest.mark.parametrize("wanted", ["CPU", "AUTO"])
def test_what_is_measured_is_in_force(folder: Path, wanted: str) -> None:
    said: list[str] = []
    with xpurt.xpu_mapping(wanted) as placement:
        devices = {d for ordinal in placement.ordinals for d in ordinal}
        before = kernels.get_kernel_policy()
        found = xpurt.calibrate(report=said.append)
        assert kernels.get_kernel_policy() == before
        assert mapping.current_placement() == placement
        assert len(found) == len(devices)
        assert len(list(folder.glob("costs-*.json"))) == len(
            {kernels.calibration_path(each.identity) for each in found}
        )
        for each in found:
            assert each.rates.launch_us > 0
            assert each.rates.copy_bytes_per_us > 0
        (curve, _) = next(each.curves for each in found if each.curves)
        assert curve.cost_class == "cheap"
        first = curve.points[0]
        expected = (first.native_us, first.kernel_us)
        assert (
            _C.testing.expected_costs(0, "cheap", "f", "alike", first.elements)
            == expected
        )
    mapping.install_costs(mapping.current_placement())
    assert any("measuring" in line for line in said)
    for each in found:
        assert any(
            each.identity.device in line and str(folder) in line for line in said
        )


def test_it_is_refused_while_tensors_need_the_mapping(folder: Path) -> None:
    with xpurt.xpu_mapping("AUTO") as placement:
        if len(placement.ordinals[0]) == 1:
            pytest.skip("one device")
        x = torch.ones(1, device="xpu")
        with pytest.raises(xpurt.MappingError, match="alive"):
            xpurt.calibrate()
        del x


def test_a_calibration_gives_the_scheduler_its_costs(folder: Path) -> None:
    device = mapping.physical_devices()[0]
    with xpurt.xpu_mapping("CPU"):
        (found,) = xpurt.calibrate()
    cost = mapping.auto.device_cost(device, found.rates)
    assert cost.launch_us == found.rates.launch_us
    assert cost.copy_bytes_per_us == found.rates.copy_bytes_per_us


def test_the_command_shows_what_is_known(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["calibrate", "--show"]) == 0
    shown = capsys.readouterr().out
    assert "not calibrated" in shown
    assert "kernel from" in shown
    assert "matmul" in shown
    with xpurt.xpu_mapping("CPU"):
        xpurt.calibrate()
        assert cli.main(["calibrate", "--show"]) == 0
    shown = capsys.readouterr().out
    assert "measured on 20" in shown
    assert "GB/s" in shown


def test_without_a_device_it_says_so() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "xpurt", "calibrate"],
        capture_output=True,
        text=True,
        env=os.environ
        | {
            "OCL_ICD_FILENAMES": "/none",
            "XPURT_VIRTUAL_GPU": "off",
            "XPURT_MAPPING": "",
        },
    )
    assert ended.returncode == 1
    assert "no SYCL device" in ended.stderr


def test_import_looks_up_no_op() -> None:
    said = output(
        "import sys, xpurt\n"
        'print([m for m in sys.modules if m.startswith("xpurt.calibration.") '
        'and m.endswith(("probe_ops", "run"))])'
    )
    assert said == "[]"


def test_ops_of_their_own_are_rows_and_are_measured() -> None:
    own = set(kernels.OPS_OF_THEIR_OWN)
    assert own <= {row.aten for row in kernels.ROWS}
    assert own <= {one.cost_class for one in probe_ops.PROBE_OPS}
    assert own <= {curve.cost_class for curve in kernels.shipped().curves}


@pytest.mark.usefixtures("learning")
@pytest.mark.parametrize(
    "one",
    [o for o in probe_ops.PROBE_OPS if o.layout != "alike"],
    ids=lambda one: f"{one.cost_class}-{one.layout}",
)
def test_what_is_measured_for_a_layout_has_it(
    one: probe_ops.ProbeOp,
) -> None:
    call, _ = one.make(1 << 20, torch.float32, "xpu")
    # A sample is discarded at most three times in a row, as its memory is new.
    for _ in range(5):
        call()
    learned = {row[3] for row in _C.testing.learned_calls()}
    assert learned == {one.layout}
