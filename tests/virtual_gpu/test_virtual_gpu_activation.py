"""Switching the virtual GPU on, from Python and from the environment."""

import textwrap
from pathlib import Path

import pytest
from virtual_gpu.gpu_child import ROOT, layer_library, start

from xpurt import _C, opencl_layer

# The package without what its __init__ loads: this part needs neither torch nor xpurt._C.
MODULE = f"""
import os, sys, types
package = types.ModuleType("xpurt")
package.__path__ = [{str(ROOT / "xpurt")!r}]
sys.modules["xpurt"] = package
from xpurt import virtual_gpu
import dpctl

def gpus():
    return [d.name for d in dpctl.get_devices(device_type="gpu")]

def error(call):
    try:
        call()
        return ""
    except (RuntimeError, ValueError) as reason:
        return f"{{type(reason).__name__}}: {{reason}}"
"""


def printed(script: str, **changes: str | None) -> str:
    child = start(MODULE + textwrap.dedent(script), **changes)
    assert child.returncode == 0, child.stderr
    return child.stdout.strip()


def test_is_off_by_itself() -> None:
    script = """
    virtual_gpu.activate_from_environment()
    print(virtual_gpu.is_active(), gpus(), virtual_gpu.is_active())
    """
    assert printed(script) == "False [] False"
    assert printed(script, XPURT_VIRTUAL_GPU="0") == "False [] False"
    assert printed(script, XPURT_VIRTUAL_GPU="off") == "False [] False"


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("activate()", "strict"),
        ("activate(strict=False)", "lenient"),
        ("activate(coherent=True)", "coherent"),
    ],
)
def test_activate(call: str, name: str) -> None:
    script = f"""
    virtual_gpu.{call}
    print(virtual_gpu.is_active(), gpus()[0], virtual_gpu.is_active())
    """
    assert printed(script) == f"True xpurt virtual GPU ({name}) True"


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        ("strict", "strict"),
        ("lenient", "lenient"),
        ("1", "lenient"),
        ("coherent", "coherent"),
    ],
)
def test_activate_from_environment(mode: str, name: str) -> None:
    script = """
    virtual_gpu.activate_from_environment()
    print(gpus()[0], dpctl.SyclDevice("gpu").global_mem_size)
    """
    seen = printed(script, XPURT_VIRTUAL_GPU=mode, XPURT_VIRTUAL_GPU_MEMORY="12345678")
    assert seen == f"xpurt virtual GPU ({name}) 12345678"


def test_settings_replace_those_of_the_environment() -> None:
    script = """
    virtual_gpu.activate(memory_bytes=1 << 20, fp64=False)
    gpu = dpctl.SyclDevice("gpu")
    print(gpu.global_mem_size, gpu.has_aspect_fp64,
          os.environ["XPURT_VIRTUAL_GPU_DELAY_US"])
    """
    seen = printed(
        script, XPURT_VIRTUAL_GPU_DELAY_US="5", XPURT_VIRTUAL_GPU_MEMORY="12345678"
    )
    assert seen == "1048576 False 0"


def test_keeps_the_layers_of_the_user() -> None:
    script = """
    virtual_gpu.activate()
    virtual_gpu.activate()
    print(os.environ["OPENCL_LAYERS"], len(gpus()))
    """
    seen = printed(script, OPENCL_LAYERS="/opt/tracer.so:/opt/other.so")
    assert seen == f"/opt/tracer.so:/opt/other.so:{layer_library()} 1"


def test_children_inherit_it() -> None:
    script = """
    virtual_gpu.activate(delay_us=7)
    gpus()
    import subprocess
    code = "import dpctl; print(dpctl.SyclDevice('gpu').name)"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True,
                         text=True, check=True).stdout.strip())
    """
    assert printed(script) == "xpurt virtual GPU (strict)"


def test_the_same_settings_may_come_again() -> None:
    script = """
    virtual_gpu.activate(delay_us=7)
    gpus()
    virtual_gpu.activate(delay_us=7)
    print(error(lambda: virtual_gpu.activate(delay_us=8)))
    """
    seen = printed(script)
    assert seen.startswith("RuntimeError: the virtual GPU comes too late")
    assert "with other settings" in seen


@pytest.mark.parametrize("driver", [None, ""])
def test_too_late_is_an_error(driver: str | None) -> None:
    # Also if SYCL found no device: it lists devices once.
    changes = {} if driver is None else {"OCL_ICD_FILENAMES": driver}
    seen = printed("dpctl.get_devices(); print(error(virtual_gpu.activate))", **changes)
    assert seen.startswith("RuntimeError: the virtual GPU comes too late")
    assert "XPURT_VIRTUAL_GPU=strict" in seen


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("delay_us=-1", "ValueError: delay_us=-1"),
        ("memory_bytes=0", "ValueError: memory_bytes=0"),
        ("link_gb_per_s=0", "ValueError: link_gb_per_s=0"),
    ],
)
def test_numbers_out_of_range(call: str, message: str) -> None:
    script = (
        f"print(error(lambda: virtual_gpu.activate({call})), virtual_gpu.is_active())"
    )
    seen = printed(script)
    assert seen.startswith(message)
    assert seen.endswith("False")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"XPURT_VIRTUAL_GPU": "on"}, 'XPURT_VIRTUAL_GPU="on" is not possible'),
        (
            {"XPURT_VIRTUAL_GPU": "1", "XPURT_VIRTUAL_GPU_DELAY_US": "2ms"},
            'XPURT_VIRTUAL_GPU_DELAY_US="2ms" is not possible',
        ),
        (
            {"XPURT_VIRTUAL_GPU": "1", "XPURT_VIRTUAL_GPU_MEMORY": "-1"},
            'XPURT_VIRTUAL_GPU_MEMORY="-1" is not possible',
        ),
        (
            {"XPURT_VIRTUAL_GPU": "1", "XPURT_VIRTUAL_GPU_LINK": "fast"},
            'XPURT_VIRTUAL_GPU_LINK="fast" is not possible',
        ),
    ],
)
def test_a_wrong_environment_is_an_error(changes: dict[str, str], message: str) -> None:
    seen = printed("print(error(virtual_gpu.activate_from_environment))", **changes)
    assert seen.startswith(f"ConfigError: {message}")


def test_a_library_that_was_not_built_is_an_error() -> None:
    script = """
    virtual_gpu.__file__ = "/nonexistent/virtual_gpu.py"
    print(error(virtual_gpu.activate))
    """
    assert printed(script).startswith("RuntimeError: the virtual GPU's library was not")


def test_users_switch_it_on_through_the_package() -> None:
    child = start(
        """
        import xpurt.testing
        xpurt.testing.virtual_gpu(memory_bytes=1 << 20)
        import dpctl
        gpu = dpctl.SyclDevice("gpu")
        print(gpu.name, gpu.global_mem_size)
        """,
    )
    assert child.stdout.split("\n")[0] == "xpurt virtual GPU (strict) 1048576", (
        child.stderr
    )


def test_a_loaded_library_is_known_by_a_link_to_it(tmp_path: Path) -> None:
    """Some installers link packages into an environment."""
    link = tmp_path / "linked.so"
    link.symlink_to(_C.__file__)
    assert opencl_layer.is_loaded(link)
    assert not opencl_layer.is_loaded(tmp_path / "other.so")
