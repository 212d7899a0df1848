"""When the layer for accelerators is there: the listed drivers, and the environment."""

import textwrap
from pathlib import Path

import pytest
from accelerators.accelerator_child import accelerator_library
from virtual_gpu.gpu_child import layer_library, start
from virtual_gpu.test_virtual_gpu_activation import MODULE


def printed(script: str, **changes: str | None) -> str:
    script = "from xpurt import accelerator_layer\n" + textwrap.dedent(script)
    child = start(MODULE + script, **changes)
    assert child.returncode == 0, child.stderr
    return child.stdout.strip()


LISTED = """
from xpurt.startup import driver
driver.prepare.__wrapped__()
driver.prepare.__wrapped__()
print(os.environ.get("OPENCL_LAYERS"))
"""
OF_CPU = "/opt/libintelocl.so:/opt/libigdrcl.so"
OF_FPGA = f"{OF_CPU}:/opt/libintelocl_emu.so"
NO_SYSTEM = {"OCL_ICD_VENDORS": "/nonexistent"}


@pytest.mark.parametrize(
    ("drivers", "mode", "there"),
    [
        (OF_CPU, None, False),
        (OF_FPGA, None, True),
        (OF_FPGA, "auto", True),
        (OF_FPGA, "off", False),
        (OF_FPGA, "0", False),
        (OF_CPU, "on", True),
        (None, None, False),
    ],
)
def test_is_there_if_a_driver_may_have_accelerators(
    drivers: str | None, mode: str | None, there: bool
) -> None:
    settings = {"OCL_ICD_FILENAMES": drivers, "XPURT_ACCELERATORS": mode, **NO_SYSTEM}
    assert printed(LISTED, **settings) == (accelerator_library() if there else "None")


def test_the_list_of_the_system_counts(tmp_path: Path) -> None:
    icd = tmp_path / "fpga.icd"
    icd.write_text("libxilinxopencl.so\n")
    found = printed(LISTED, OCL_ICD_VENDORS=str(tmp_path))
    assert found == accelerator_library()


def test_is_below_the_virtual_gpu() -> None:
    settings = {"OPENCL_LAYERS": "/opt/tracer.so", "XPURT_VIRTUAL_GPU": "strict"}
    found = printed(LISTED, XPURT_ACCELERATORS="on", **settings)
    assert found == f"/opt/tracer.so:{accelerator_library()}:{layer_library()}"


TOO_LATE = """
dpctl.get_devices()
print(error(lambda: accelerator_layer.activate_from_environment(["/opt/libfpga.so"])))
"""


def test_too_late_is_an_error_if_it_was_asked_for() -> None:
    found = printed(TOO_LATE, XPURT_ACCELERATORS="on")
    assert found.startswith("RuntimeError: the accelerator layer comes too late")
    assert "XPURT_ACCELERATORS=on" in found
    assert printed(TOO_LATE) == ""


def test_a_library_that_was_not_built_is_an_error() -> None:
    script = """
    accelerator_layer.__file__ = "/nonexistent/accelerator_layer.py"
    print(error(accelerator_layer.activate))
    """
    found = printed(script)
    assert found.startswith("RuntimeError: the accelerator layer's library was not")


def test_a_machine_without_accelerators_is_as_before() -> None:
    script = """
    accelerator_layer.activate()
    print([each.get_filter_string() for each in dpctl.get_devices()])
    """
    assert printed(script) == "['opencl:cpu:0']"
