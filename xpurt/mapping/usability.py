"""Why a device can't be used, or is left alone, and what a usable one lacks.

It reads what SYCL, OpenCL and PyTorch report and the environment, and uses no device.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xpurt import accelerator_layer, usm_on_svm

if TYPE_CHECKING:
    from xpurt.mapping.devices import PhysicalDevice

# SYCL's runtime hides these OpenCL platforms by their names, whatever they can do.
HIDDEN_PLATFORMS = ("NVIDIA CUDA", "AMD Accelerated Parallel Processing")
# Variables of SYCL's runtime that choose the devices it lists.
FILTERS = ("ONEAPI_DEVICE_SELECTOR", "SYCL_DEVICE_ALLOWLIST")
USM = "cl_intel_unified_shared_memory"
OLDEST_OPENCL = (1, 2)

# From CL/cl.h: the bits of cl_device_type.
_KINDS = {1 << 1: "cpu", 1 << 2: "gpu", 1 << 3: "accelerator"}


@dataclass(frozen=True, slots=True)
class OpenCLFacts:
    """What an OpenCL driver reports of a device; ``_C.opencl_devices`` has more.

    handle: the ``cl_device_id``.
    extensions: names, separated by spaces.
    type: bits of ``cl_device_type``.
    svm: bits of ``cl_device_svm_capabilities``; 0: no shared virtual memory.
    """

    handle: int
    platform: str
    name: str
    version: str
    driver_version: str
    extensions: str
    type: int
    svm: int
    vendor_id: int
    address_bits: int
    available: bool
    has_compiler: bool

    @property
    def kind(self) -> str:
        return next((kind for bit, kind in _KINDS.items() if self.type & bit), "custom")

    @property
    def opencl_version(self) -> tuple[int, int]:
        """The version as two numbers; (0, 0) if the driver gives no such text."""
        words = self.version.split()
        major, _, minor = (words[1] if len(words) > 1 else "").partition(".")
        return (int(major), int(minor)) if (major + minor).isdecimal() else (0, 0)


@dataclass(frozen=True, slots=True)
class UnusableDevice:
    """A device that no mapping can have.

    filter_string: SYCL's name for it; an empty string if SYCL does not list it.
    reason: what it lacks, or what hides it, and a way out.
    """

    name: str
    kind: str
    backend: str
    platform: str
    driver_version: str
    filter_string: str
    reason: str

    def __str__(self) -> str:
        return f"{self.filter_string or f'{self.backend}:{self.kind}'} {self.name}"


def why_unusable(*, has_usm: bool, facts: OpenCLFacts | None) -> str:
    """Why a device that SYCL lists can't be used; an empty string if it can.

    has_usm: whether SYCL can allocate device memory by pointer.
    facts: None for a device of another backend than OpenCL.
    """
    if facts is not None:
        if not facts.available:
            return "its driver reports that it is not available now"
        if facts.opencl_version < OLDEST_OPENCL:
            return (
                f'it has "{facts.version}", and kernels need OpenCL 1.2: update its '
                "driver"
            )
        if facts.address_bits not in (0, 64):
            return (
                f"its addresses have {facts.address_bits} bits, and pointers of tensors "
                "have 64: use a driver with 64 bits"
            )
        if not facts.has_compiler:
            return (
                "its driver has no compiler, and kernels are built from OpenCL C: "
                "install the driver's compiler"
            )
    if not has_usm:
        return _without_usm(facts)
    return ""


def _without_usm(facts: OpenCLFacts | None) -> str:
    if facts is None:
        return "it has no unified shared memory (USM), in which tensors live"
    if facts.svm:
        return (
            f"its driver has no unified shared memory ({USM}), in which tensors live, "
            f"and only shared virtual memory: {usm_on_svm.way_out()}"
        )
    return (
        f"its driver has neither unified shared memory ({USM}), in which tensors live, "
        "nor shared virtual memory: update the driver, or use another device"
    )


def why_hidden(
    facts: OpenCLFacts, environment: Mapping[str, str], *, driven_as: str
) -> str:
    """Why SYCL does not list a device that OpenCL lists.

    driven_as: the device type, as "cuda", under which this build of PyTorch drives the
        device; an empty string if it does not.
    """
    if driven_as:
        return (
            f"this build of PyTorch drives it as {driven_as}: use "
            f'device="{driven_as}" for it'
        )
    if any(name in facts.platform for name in HIDDEN_PLATFORMS):
        return (
            f'SYCL hides the OpenCL platform "{facts.platform}" by its name: use a '
            f"build of PyTorch for this GPU, or {usm_on_svm.way_out()}"
        )
    for name in FILTERS:
        if environment.get(name):
            return (
                f"{name}={environment[name]} hides it from SYCL: unset the variable, or "
                "add the device to it"
            )
    if facts.kind == "accelerator":
        return accelerator_layer.way_out()
    if facts.kind == "custom":
        return "it is a device of OpenCL's type custom, which runs no kernels"
    return "SYCL does not list it, though OpenCL does: update its driver"


def remarks(device: "PhysicalDevice") -> list[str]:
    """What a device lacks that can be used nevertheless, and what follows."""
    found = []
    if device.kind == "accelerator":
        found.append(
            "an accelerator, which SYCL takes for a GPU: the mappings explicit and AUTO "
            "have it, and GPU does not"
        )
    if device.left_to:
        found.append(
            f"this build of PyTorch drives it as {device.left_to}, so a mapping has it "
            "only if devices= names it"
        )
    if device.backend != "opencl":
        found.append(
            "no OpenCL driver lists it, so PyTorch's CPU kernels compute on copies of "
            "its tensors: install its OpenCL driver"
        )
    elif not device.has_fp64:
        found.append(
            "it has no float64, so PyTorch's CPU kernels, or another device of the "
            "mapping, compute in it"
        )
    return found
