"""Why a device can't be used, from what drivers report; and what is said of it."""

from dataclasses import replace
from typing import Any

import pytest
from made_up_devices import ARC, CPU, FPGA, NVIDIA, split_as_requested
from own_process import run

from xpurt.errors import MappingError
from xpurt.mapping.resolve import resolve
from xpurt.mapping.spec import parse
from xpurt.mapping.usability import (
    OpenCLFacts,
    UnusableDevice,
    remarks,
    why_hidden,
    why_unusable,
)

GOOD = OpenCLFacts(
    handle=1,
    platform="Made-up platform",
    name="Made-up GPU",
    version="OpenCL 3.0 made up",
    driver_version="1.0",
    extensions="cl_intel_unified_shared_memory",
    type=1 << 2,
    svm=0,
    vendor_id=0x8086,
    address_bits=64,
    available=True,
    has_compiler=True,
)
LEFT = replace(NVIDIA, left_to="cuda")
OLD = UnusableDevice("Old", "gpu", "opencl", "P", "1", "opencl:gpu:1", "it is too old")


def test_a_good_device_can_be_used() -> None:
    assert why_unusable(has_usm=True, facts=GOOD) == ""
    assert why_unusable(has_usm=True, facts=None) == ""


@pytest.mark.parametrize(
    ("changes", "has_usm", "reason"),
    [
        ({}, False, "neither unified shared memory (cl_intel_unified_shared_memory)"),
        ({}, False, "nor shared virtual memory"),
        (
            {"svm": 1},
            False,
            "no unified shared memory (cl_intel_unified_shared_memory)",
        ),
        ({"version": "OpenCL 1.1 x"}, True, 'has "OpenCL 1.1 x", and kernels need'),
        ({"version": "unknown"}, True, "kernels need OpenCL 1.2"),
        ({"address_bits": 32}, True, "addresses have 32 bits"),
        ({"has_compiler": False}, True, "no compiler"),
        ({"available": False}, True, "not available"),
    ],
)
def test_the_reason_names_what_is_missing(
    changes: dict[str, Any], has_usm: bool, reason: str
) -> None:
    assert reason in why_unusable(has_usm=has_usm, facts=replace(GOOD, **changes))


@pytest.mark.parametrize(
    ("changes", "environment", "driven_as", "reason"),
    [
        ({}, {}, "cuda", 'use device="cuda"'),
        ({"platform": "NVIDIA CUDA"}, {}, "", "hides the OpenCL platform"),
        (
            {},
            {"ONEAPI_DEVICE_SELECTOR": "opencl:cpu"},
            "",
            "ONEAPI_DEVICE_SELECTOR=opencl:cpu hides it",
        ),
        ({"type": 1 << 4}, {}, "", "type custom"),
        ({"type": 1 << 3}, {}, "", "start Python with XPURT_ACCELERATORS=on"),
        ({}, {}, "", "SYCL does not list it"),
    ],
)
def test_the_reason_names_what_hides_a_device(
    changes: dict[str, Any], environment: dict[str, str], driven_as: str, reason: str
) -> None:
    facts = replace(GOOD, **changes)
    assert reason in why_hidden(facts, environment, driven_as=driven_as)


def place(mapping: str, *devices: Any, only: str | None = None) -> tuple[Any, ...]:
    placement = resolve(
        parse(mapping, only), devices, split=split_as_requested, max_devices=16
    )
    return placement.ordinals


def test_an_error_of_a_mapping_gives_the_reasons() -> None:
    with pytest.raises(MappingError, match="opencl:gpu:1 Old can't be used: it is too"):
        resolve(
            parse("GPU"),
            (CPU,),
            split=split_as_requested,
            max_devices=16,
            unusable=(OLD,),
        )


def test_an_error_says_that_none_can_be_used() -> None:
    with pytest.raises(MappingError, match=r"no device that can be used\. .* too old"):
        resolve(
            parse("AUTO"),
            (),
            split=split_as_requested,
            max_devices=16,
            unusable=(OLD,),
        )


def test_a_gpu_of_cuda_is_left_alone_unless_it_is_named() -> None:
    assert place("explicit", LEFT, CPU) == ((CPU,),)
    assert place("AUTO", LEFT, ARC, CPU) == ((ARC, CPU),)
    assert place("GPU", LEFT, ARC) == ((ARC,),)
    assert place("GPU", LEFT, ARC, only="cuda:gpu:0") == ((LEFT,),)
    assert place("AUTO", LEFT, CPU, only="gpu") == ((LEFT,),)
    for mapping in ("GPU", "AUTO", "explicit", "AUTO:GPU"):
        with pytest.raises(MappingError, match='left to "cuda" unless devices= names'):
            place(mapping, LEFT)


def test_what_a_usable_device_lacks_is_said() -> None:
    assert remarks(CPU) == []
    assert "no float64" in remarks(replace(ARC, has_fp64=False))[0]
    assert "no OpenCL driver" in remarks(NVIDIA)[0]
    assert "drives it as cuda" in remarks(LEFT)[0]
    assert "the mappings explicit and AUTO" in remarks(FPGA)[0]


DOCTOR = """
import torch, xpurt
from xpurt.command_line.cli import main
for command in ("devices", "doctor"):
    print("exit", main([command]))
try:
    xpurt.set_xpu_mapping("GPU")
except xpurt.MappingError as error:
    print("error:", error)
"""


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ("usm=0", "neither unified shared memory"),
        ("compiler=0", "no compiler"),
        ("address_bits=32", "addresses have 32 bits"),
        ("opencl=1.1", "kernels need OpenCL 1.2"),
    ],
)
def test_devices_doctor_and_the_mapping_give_the_reason(
    limits: str, reason: str
) -> None:
    lines = _said_with(XPURT_VIRTUAL_GPU_LIMITS=limits)
    said = [line for line in lines if "xpurt virtual GPU" in line and reason in line]
    assert [line.split()[0] for line in said] == ["opencl:gpu:0", "note", "error:"]
    assert lines.count("exit 0") == 2


def test_a_device_that_a_variable_hides_is_explained() -> None:
    lines = _said_with(ONEAPI_DEVICE_SELECTOR="opencl:cpu")
    said = [line for line in lines if "ONEAPI_DEVICE_SELECTOR=opencl:cpu hides" in line]
    assert len(said) == 3


def test_devices_says_that_doubles_are_missing() -> None:
    lines = _said_with(XPURT_VIRTUAL_GPU_FP64="0")
    assert len([line for line in lines if "no float64" in line]) == 2


def _said_with(**environment: str) -> list[str]:
    done = run(DOCTOR, XPURT_VIRTUAL_GPU="strict", XPURT_MAPPING="AUTO", **environment)
    assert done.returncode == 0, done.stderr
    return [str(line) for line in done.stdout.splitlines()]
