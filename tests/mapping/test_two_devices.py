"""The mappings on two real devices: the CPU device and the virtual GPU beside it.

The virtual GPU has to be there before the first use of a device, so each test is a
process of its own.
"""

import textwrap

import pytest
from own_process import output

pytest.importorskip("xpurt.virtual_gpu", reason="this build has no virtual GPU")

BEGIN = """
    from xpurt import virtual_gpu
    virtual_gpu.activate(strict=True)
    import xpurt
    from xpurt import _C, mapping

    def show():
        ordinals = mapping.current_placement().ordinals
        print(xpurt.get_xpu_mapping(), _C.device_count(),
              [[device.kind for device in ordinal] for ordinal in ordinals])
"""


def run(code: str) -> list[str]:
    program = textwrap.dedent(BEGIN) + textwrap.dedent(code)
    return output(program, XPURT_MAPPING="").splitlines()


def test_the_gpu_comes_first() -> None:
    assert run("""
        gpu, cpu = xpurt.physical_devices()
        print(gpu.kind, cpu.kind)
        print(gpu.host_accessible, gpu.system_usm, gpu.max_parts)
        print(gpu.uuid != cpu.uuid)
        print(gpu.filter_string, cpu.filter_string)
    """) == ["gpu cpu", "False False 0", "True", "opencl:gpu:0 opencl:cpu:0"]


def test_every_mapping_takes_its_devices() -> None:
    assert run("""
        for name in ("explicit", "CPU", "GPU", "AUTO", "AUTO:CPU,GPU", "AUTO:-GPU"):
            xpurt.set_xpu_mapping(name)
            show()
    """) == [
        "explicit 2 [['gpu'], ['cpu']]",
        "CPU 1 [['cpu']]",
        "GPU 1 [['gpu']]",
        "AUTO 1 [['gpu', 'cpu']]",
        "AUTO:CPU,GPU 1 [['cpu', 'gpu']]",
        "AUTO:-GPU 1 [['cpu']]",
    ]


def test_home_is_the_cpu_wherever_it_stands() -> None:
    assert run("""
        for name in ("AUTO", "AUTO:CPU,GPU", "AUTO:GPU"):
            xpurt.set_xpu_mapping(name)
            print(mapping.current_placement().homes)
    """) == ["(1,)", "(0,)", "(0,)"]


def test_devices_choose_and_order() -> None:
    assert run("""
        xpurt.set_xpu_mapping("explicit", devices=["cpu", "opencl:gpu:0"])
        show()
    """) == ["explicit 2 [['cpu'], ['gpu']]"]


def test_a_device_that_cannot_be_split_is_named() -> None:
    (line,) = run("""
        try:
            xpurt.set_xpu_mapping("GPU", partition=[1])
        except xpurt.XpurtError as error:
            print(type(error).__name__, error)
    """)
    assert line.startswith("MappingError opencl:gpu:0")
    assert "its driver does not split it" in line
