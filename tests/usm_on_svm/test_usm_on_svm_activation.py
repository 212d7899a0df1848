"""Switching USM on SVM on, from Python and from the environment."""

import textwrap

import pytest
from usm_on_svm.svm_child import hiding_library, usm_library
from virtual_gpu.gpu_child import layer_library, start
from virtual_gpu.test_virtual_gpu_activation import MODULE


def printed(script: str, **changes: str | None) -> str:
    script = "from xpurt import usm_on_svm\n" + textwrap.dedent(script)
    child = start(MODULE + script, **changes)
    assert child.returncode == 0, child.stderr
    return child.stdout.strip()


LISTED = """
usm_on_svm.activate_from_environment()
usm_on_svm.activate_from_environment()
print(os.environ.get("OPENCL_LAYERS"))
"""


def test_is_off_by_itself() -> None:
    assert printed(LISTED) == "None"
    assert printed(LISTED, XPURT_USM_ON_SVM="off") == "None"
    assert printed(LISTED, XPURT_VIRTUAL_GPU="strict") == "None"


@pytest.mark.parametrize("name", ["XPURT_USM_ON_SVM", "XPURT_VIRTUAL_GPU"])
def test_is_above_the_layers_of_the_user(name: str) -> None:
    value = "svm" if name == "XPURT_VIRTUAL_GPU" else "on"
    found = printed(LISTED, OPENCL_LAYERS="/opt/tracer.so", **{name: value})
    assert found == f"/opt/tracer.so:{usm_library()}"


def test_is_above_the_virtual_gpu() -> None:
    script = "virtual_gpu.activate_from_environment()\n" + LISTED
    found = printed(script, XPURT_VIRTUAL_GPU="svm")
    assert found == f"{layer_library()}:{usm_library()}"


def test_works_without_a_virtual_gpu() -> None:
    script = """
    usm_on_svm.activate()
    print([d.has_aspect_usm_device_allocations for d in dpctl.get_devices()])
    usm_on_svm.activate()
    """
    assert printed(script, OPENCL_LAYERS=hiding_library()) == "[True]"


def test_too_late_is_an_error() -> None:
    found = printed("dpctl.get_devices()\nprint(error(usm_on_svm.activate))")
    assert found.startswith("RuntimeError: USM on SVM comes too late")
    assert "XPURT_USM_ON_SVM=on" in found


def test_a_library_that_was_not_built_is_an_error() -> None:
    script = """
    usm_on_svm.__file__ = "/nonexistent/usm_on_svm.py"
    print(error(usm_on_svm.activate))
    """
    found = printed(script)
    assert found.startswith("RuntimeError: the layer USM on SVM's library was not")


def test_users_take_a_virtual_gpu_of_the_mode_svm() -> None:
    child = start(
        """
        import xpurt.testing
        xpurt.testing.virtual_gpu(svm=True)
        import torch
        xpurt.set_xpu_mapping("GPU")
        print(torch.ones(5, device="xpu").sum().item(), torch.xpu.get_device_name())
        """
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.strip() == "5.0 xpurt virtual GPU (svm)"
