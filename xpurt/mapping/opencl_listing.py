"""The devices as OpenCL lists them, and which of them SYCL or PyTorch takes."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from xpurt import _C
from xpurt.mapping.spec import Kind
from xpurt.mapping.usability import OpenCLFacts, UnusableDevice, why_hidden
from xpurt.startup import accelerator, extension

if TYPE_CHECKING:
    from xpurt.mapping.devices import PhysicalDevice

SyclDevice: TypeAlias = Any  # dpctl's


def opencl_facts() -> dict[int, OpenCLFacts]:
    """The devices that OpenCL lists, by their handles."""
    if extension.inactive_reason() is not None:
        return {}  # only the extension can query them
    found = (OpenCLFacts(**facts) for facts in _C.opencl_devices())
    return {facts.handle: facts for facts in found}


def opencl_handle(sycl_device: SyclDevice) -> int:
    """The ``cl_device_id``; 0 if the backend is not OpenCL."""
    if extension.inactive_reason() is not None:
        return 0
    return _C.opencl_handle(sycl_device.addressof_ref())


def own_filter_string(
    filter_string: str, kind: Kind, accelerators: Sequence[int]
) -> str:
    """The filter string of a device by xpurt's kinds.

    filter_string: SYCL's, which counts OpenCL's accelerators among the GPUs.
    accelerators: the numbers that SYCL gives to accelerators as GPUs of OpenCL.
    """
    backend, listed_as, number = filter_string.split(":")
    if (backend, listed_as) != ("opencl", "gpu"):
        return filter_string
    earlier = sum(each < int(number) for each in accelerators)
    own = earlier if kind == "accelerator" else int(number) - earlier
    return f"{backend}:{kind}:{own}"


def unusable_listing(device: "PhysicalDevice", reason: str) -> UnusableDevice:
    """A device that SYCL lists and xpurt can't use."""
    return UnusableDevice(
        name=device.name,
        kind=device.kind,
        backend=device.backend,
        platform=device.platform,
        driver_version=device.driver_version,
        filter_string=device.filter_string,
        reason=reason,
    )


def hidden_device(facts: OpenCLFacts) -> UnusableDevice:
    """A device that OpenCL lists and SYCL does not."""
    type_ = driven_as(facts.kind, "opencl", facts.vendor_id)
    return UnusableDevice(
        name=facts.name.strip(),
        kind=facts.kind,
        backend="opencl",
        platform=facts.platform,
        driver_version=facts.driver_version,
        filter_string="",
        reason=why_hidden(facts, os.environ, driven_as=type_),
    )


def driven_as(kind: str, backend: str, vendor_id: int) -> str:
    """The device type under which PyTorch drives this GPU, or an empty string."""
    if kind != "gpu":
        return ""
    return accelerator.type_that_drives(vendor_id, backend)
