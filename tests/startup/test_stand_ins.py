"""The stand-ins of csrc/first_use have each virtual function of PyTorch's interfaces: one
that is new in another version of PyTorch would have the answer of a build without xpu."""

import re
from pathlib import Path

import pytest
import torch

FIRST_USE = Path(__file__).parents[2] / "xpurt" / "csrc" / "first_use"
HEADERS = Path(torch.__file__).parent / "include"

# The class that stands in, its file, and the classes of PyTorch with their headers.
STAND_INS = {
    "FirstUseHooks": (
        "hooks.cpp",
        ("ATen/detail/XPUHooksInterface.h", "XPUHooksInterface"),
        ("ATen/detail/AcceleratorHooksInterface.h", "AcceleratorHooksInterface"),
    ),
    "FirstUseGuard": (
        "guard.cpp",
        ("c10/core/impl/DeviceGuardImplInterface.h", "DeviceGuardImplInterface"),
    ),
    "FirstUseDeviceAllocator": (
        "allocators.cpp",
        ("c10/core/CachingDeviceAllocator.h", "DeviceAllocator"),
        ("c10/core/Allocator.h", "Allocator"),
    ),
    "FirstUseHostAllocator": (
        "allocators.cpp",
        ("ATen/core/CachingHostAllocator.h", "HostAllocator"),
        ("c10/core/Allocator.h", "Allocator"),
    ),
}
# The interfaces' own answers are right: xpurt has the same...
SAME = {"level_zero", "is_simple_data_ptr"}
# ...or nothing is pinned before the first use.
NOTHING_YET = {
    "raw_deleter",
    "get_segments",
    "get_traces",
    "is_history_enabled",
    "record_external_register",
    "record_external_unregister",
}


def functions(text: str, name: str, pattern: str) -> set[str]:
    """The names that `pattern` finds in the definition of a class."""
    body = re.search(
        rf"(?:struct|class)\s+(?:\w+\s+)?{name}\b[^;{{]*\{{(.*?)^\}};",
        text,
        re.S | re.M,
    )
    assert body is not None
    statements = re.sub(r"^#.*$", "", body[1], flags=re.M)
    return set(re.findall(pattern, statements)) - {name}


@pytest.mark.parametrize("stand_in", STAND_INS)
def test_each_virtual_function_has_a_stand_in(stand_in: str) -> None:
    file, *interfaces = STAND_INS[stand_in]
    wanted = set().union(
        *(
            functions(
                (HEADERS / header).read_text(), name, r"virtual\s+[^;{(]*?(\w+)\("
            )
            for header, name in interfaces
        )
    )
    overrides = r"(\w+)\([^;{]*\)\s*(?:const)?\s*(?:noexcept)?\s*override"
    found = functions((FIRST_USE / file).read_text(), stand_in, overrides)
    assert len(wanted) > 10
    assert found
    assert wanted - found <= SAME | NOTHING_YET
