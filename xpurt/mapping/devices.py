"""The physical devices of this machine, and the one import of dpctl.

Note [Order of devices]: GPUs first, then accelerators, then CPUs; within a kind by
backend (OpenCL first), then by the number that SYCL gives. The order depends on the
devices alone, not on the order in which drivers list them. So it is the same in every
process with the same drivers.

Note [One device, several backends]: a GPU may be listed by OpenCL and by Level Zero.
It counts once, and is used through OpenCL, on which our OpenCL C kernels build. Two
listings count as the same hardware if their uuids from the driver are equal. If a
driver gives none, the n-th device of a kind and name on one route is taken for the n-th
of that kind and name on another. A route is an OpenCL platform, or any other backend as
a whole.
"""

import functools
import os
import threading
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from xpurt import _C
from xpurt.errors import MappingError
from xpurt.mapping.opencl_listing import (
    driven_as,
    hidden_device,
    opencl_facts,
    opencl_handle,
    own_filter_string,
    unusable_listing,
)
from xpurt.mapping.spec import (
    BACKENDS,
    KINDS,
    Kind,
    Partition,
    parts_in_compute_units,
)
from xpurt.mapping.usability import OpenCLFacts, UnusableDevice, why_unusable
from xpurt.startup import driver, extension

# dpctl ships no types: its objects are Any, and are used in this file only.
SyclDevice: TypeAlias = Any
SyclQueue: TypeAlias = Any

_Twin: TypeAlias = tuple[Kind, str, int]
_Route: TypeAlias = tuple[str, int]

# The namespace of the uuids that are generated here (Note [uuid]).
_NAMESPACE = uuid.UUID("6f1c4ba2-8d7e-5a43-9b0e-2c5d8a7f1e90")


@dataclass(frozen=True, slots=True)
class PhysicalDevice:
    """One device as SYCL lists it, or one part of it.

    uuid: 36 characters. Note [uuid]: it is the driver's own (cl_khr_device_uuid and
        its kin) if the driver reports one; then `uuid_from_driver` is true. Else it is
        a hash of platform, name, driver version and number among equals: the same in
        every process, but not across machines, nor after an update of the driver.
    memory_bytes: all of the device's global memory.
    clock_mhz: the highest clock of its compute units; 0 if the driver does not say.
    system_usm: kernels may read and write plain malloc memory.
    host_accessible: the host may read and write the memory of tensors on the device.
    vendor_id: the number of the PCI vendor; 0 if the driver is not OpenCL's.
    left_to: "cuda" for a GPU that this build of PyTorch drives as cuda. A mapping has
        it only if ``devices=`` names it. Else an empty string.
    filter_string: SYCL's name for it, ``backend:kind:number``; a part has a further
        ``.n``, which SYCL does not understand. SYCL counts accelerators among the GPUs,
        and xpurt does not.
    aliases: other filter strings under which SYCL lists the same hardware.
    parent: the root device, if this is a part of one.
    sycl_device: the ``dpctl.SyclDevice``; two equal devices may hold different ones.
    """

    name: str
    kind: Kind
    backend: str
    vendor: str
    platform: str
    driver_version: str
    uuid: str
    uuid_from_driver: bool
    memory_bytes: int
    compute_units: int
    max_parts: int
    has_fp64: bool
    has_fp16: bool
    system_usm: bool
    host_accessible: bool
    sub_group_sizes: tuple[int, ...]
    filter_string: str
    clock_mhz: int = 0
    platform_index: int = 0
    vendor_id: int = 0
    left_to: str = ""
    aliases: tuple[str, ...] = ()
    parent: "PhysicalDevice | None" = field(default=None, repr=False)
    sycl_device: SyclDevice = field(default=None, compare=False, repr=False)

    @property
    def number(self) -> int:
        """SYCL's number among the root devices of the same backend and kind."""
        return _number_of(self.filter_string)

    @property
    def address(self) -> int:
        """The address of the ``sycl::device``; valid while this object lives."""
        return int(self.sycl_device.addressof_ref())

    def __str__(self) -> str:
        return f"{self.filter_string} {self.name}"


_lock = threading.Lock()
# The process that has loaded drivers which do not survive a fork.
_bound_to: int | None = None


def physical_devices() -> tuple[PhysicalDevice, ...]:
    """The root devices of this machine, each once, in the order of the ordinals.

    Drivers are queried once per process: the first call loads them. Without a driver
    the result is empty. Devices that can't be used are in `unusable_devices`.
    """
    with _lock:
        return _enumerate().usable


def unusable_devices() -> tuple[UnusableDevice, ...]:
    """The devices that no mapping can have, each with the reason.

    They are those that SYCL lists and xpurt can't use, and those that OpenCL lists and
    SYCL does not. Drivers are queried as by `physical_devices`.
    """
    with _lock:
        return _enumerate().unusable


def known_to_be_none() -> bool:
    """Whether there is no device, as far as that is known without loading a driver."""
    if _enumerate.cache_info().currsize:
        return not _enumerate().usable
    return not driver.may_be_there()


def loaded_before_fork() -> bool:
    """Whether drivers that a fork breaks were loaded before this process was forked."""
    return _bound_to is not None and _bound_to != os.getpid()


def survive_fork() -> bool:
    """Whether a process forked now can use the devices if this process has not."""
    return _bound_to is None


def queue_from_capsule(capsule: object) -> SyclQueue:
    """The queue in a capsule named "SyclQueueRef", as dpctl's object."""
    import dpctl

    return dpctl.SyclQueue(capsule)


def _forget_lock() -> None:
    # Another thread of the parent may have held it; it does not exist here.
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_lock)


class _Found(NamedTuple):
    usable: tuple[PhysicalDevice, ...]
    unusable: tuple[UnusableDevice, ...]


@functools.cache
def _enumerate() -> _Found:
    driver.prepare()
    import dpctl

    before = _threads()
    in_opencl = opencl_facts()
    accelerators = [
        _number_of(each.get_filter_string())
        for each in dpctl.get_devices(backend="opencl", device_type="gpu")
        if _kind_of(each, in_opencl.get(opencl_handle(each))) == "accelerator"
    ]
    listed: list[PhysicalDevice] = []
    unusable: list[UnusableDevice] = []
    for platform_index, platform in enumerate(dpctl.get_platforms()):
        for sycl_device in platform.get_devices():
            facts = in_opencl.pop(opencl_handle(sycl_device), None)
            if sycl_device.device_type.name not in KINDS:
                continue
            device = _describe(sycl_device, platform_index, facts, accelerators)
            reason = why_unusable(
                has_usm=sycl_device.has_aspect_usm_device_allocations, facts=facts
            )
            if reason:
                unusable.append(unusable_listing(device, reason))
            else:
                listed.append(device)
    unusable += [hidden_device(facts) for facts in in_opencl.values()]
    # The CPU driver alone is known to list its devices without starting threads, and to
    # work in a child that is forked afterwards.
    if any(device.kind != "cpu" for device in listed) or _threads() - before:
        _bind_to_process()
    return _Found(in_order(once_each(listed)), tuple(unusable))


def _bind_to_process() -> None:
    """From now on a forked child cannot use the drivers."""
    global _bound_to
    if _bound_to is None:
        _bound_to = os.getpid()
        if extension.inactive_reason() is None:
            _C.refuse_forks()


def _threads() -> set[str]:
    return {task.name for task in Path("/proc/self/task").iterdir()}


def in_order(devices: Iterable[PhysicalDevice]) -> tuple[PhysicalDevice, ...]:
    """The devices sorted as in Note [Order of devices]."""
    return tuple(sorted(devices, key=lambda d: (KINDS.index(d.kind), *_preference(d))))


def once_each(listed: Iterable[PhysicalDevice]) -> tuple[PhysicalDevice, ...]:
    """Each hardware device once, by Note [One device, several backends].

    The filter strings of dropped listings become aliases.
    """
    kept: list[tuple[_Twin, PhysicalDevice]] = []
    seen: Counter[tuple[_Route, str, str]] = Counter()
    for device in sorted(listed, key=_preference):
        equals = (_route(device), device.kind, device.name)
        twin = (device.kind, device.name, seen[equals])
        seen[equals] += 1
        for i, (other_twin, other) in enumerate(kept):
            if _same_hardware(device, twin, other, other_twin):
                aliases = (*other.aliases, device.filter_string)
                kept[i] = (other_twin, replace(other, aliases=aliases))
                break
        else:
            kept.append((twin, device))
    return tuple(device for _, device in kept)


def split(device: PhysicalDevice, partition: Partition) -> tuple[PhysicalDevice, ...]:
    """The parts of a root device; a partition of 1 gives the device itself.

    Raises MappingError if the device cannot be split like this.
    """
    if partition == 1:
        return (device,)
    if partition == "numa":
        parts = _create_sub_devices(device, "numa", partition)
    else:
        units = parts_in_compute_units(partition, device.compute_units, str(device))
        if len(units) > device.max_parts:
            raise _unsplittable(
                device,
                partition,
                f"its driver makes at most {device.max_parts} parts"
                if device.max_parts
                else "its driver does not split it",
            )
        # dpctl's number is compute units per part, not the number of parts.
        how = units[0] if isinstance(partition, int) else list(units)
        parts = _create_sub_devices(device, how, partition)
        made = tuple(part.max_compute_units for part in parts)
        if made != units:
            raise _unsplittable(
                device, partition, f"its driver made parts of {list(made)} units"
            )
    return tuple(_part(device, part, i) for i, part in enumerate(parts))


def _create_sub_devices(
    device: PhysicalDevice, how: int | list[int] | str, partition: Partition
) -> list[SyclDevice]:
    import dpctl

    _bind_to_process()  # the driver starts threads when it makes parts
    try:
        return list(device.sycl_device.create_sub_devices(partition=how))
    except (dpctl.SyclSubDeviceCreationError, ValueError) as error:
        reason = str(error).rstrip(".") or "its driver refused"
        raise _unsplittable(device, partition, reason) from error


def _unsplittable(
    device: PhysicalDevice, partition: Partition, reason: str
) -> MappingError:
    request = f'"{partition}"' if isinstance(partition, str) else str(partition)
    return MappingError(
        f"{device} cannot be split by partition={request}: {reason}. Choose another "
        "partition, or leave this device out with devices=."
    )


def _describe(
    sycl_device: SyclDevice,
    platform_index: int,
    facts: OpenCLFacts | None = None,
    accelerators: Sequence[int] = (),
) -> PhysicalDevice:
    kind = _kind_of(sycl_device, facts)
    platform = sycl_device.sycl_platform
    listed_as = sycl_device.get_filter_string()
    from_driver = _driver_uuid(sycl_device)
    system_usm = sycl_device.has_aspect_usm_system_allocations
    vendor_id = facts.vendor_id if facts is not None else 0
    return PhysicalDevice(
        name=sycl_device.name.strip(),
        kind=kind,
        backend=sycl_device.backend.name,
        vendor=sycl_device.vendor,
        platform=platform.name,
        driver_version=sycl_device.driver_version,
        uuid=str(from_driver or _made_up_uuid(sycl_device)),
        uuid_from_driver=from_driver is not None,
        memory_bytes=sycl_device.global_mem_size,
        compute_units=sycl_device.max_compute_units,
        max_parts=sycl_device.partition_max_sub_devices,
        has_fp64=sycl_device.has_aspect_fp64,
        has_fp16=sycl_device.has_aspect_fp16,
        system_usm=system_usm,
        host_accessible=system_usm or kind == "cpu",
        sub_group_sizes=tuple(sycl_device.sub_group_sizes),
        filter_string=own_filter_string(listed_as, kind, accelerators),
        clock_mhz=sycl_device.max_clock_frequency,
        platform_index=platform_index,
        vendor_id=vendor_id,
        left_to=driven_as(kind, sycl_device.backend.name, vendor_id),
        sycl_device=sycl_device,
    )


def _kind_of(sycl_device: SyclDevice, facts: OpenCLFacts | None) -> Kind:
    """Its kind. SYCL may take an accelerator for a GPU; OpenCL does not."""
    if facts is not None and facts.kind == "accelerator":
        return "accelerator"
    kind: Kind = sycl_device.device_type.name
    return kind


def _number_of(filter_string: str) -> int:
    """The number in ``backend:kind:number``, also if ``.part`` follows."""
    return int(filter_string.rpartition(":")[2].partition(".")[0])


def _driver_uuid(sycl_device: SyclDevice) -> uuid.UUID | None:
    if extension.inactive_reason() is not None:
        return None  # only the extension can query it
    found = _C.device_uuid(sycl_device.addressof_ref())
    return uuid.UUID(bytes=found) if len(found) == 16 and any(found) else None


def _made_up_uuid(sycl_device: SyclDevice) -> uuid.UUID:
    identity = (
        sycl_device.sycl_platform.name,
        sycl_device.name,
        sycl_device.driver_version,
        sycl_device.get_filter_string(),
    )
    return uuid.uuid5(_NAMESPACE, "\n".join(identity))


def _part(parent: PhysicalDevice, sycl_device: SyclDevice, i: int) -> PhysicalDevice:
    units = sycl_device.max_compute_units
    return replace(
        parent,
        uuid=str(uuid.uuid5(uuid.UUID(parent.uuid), f"part {i} of {units} units")),
        uuid_from_driver=False,
        memory_bytes=sycl_device.global_mem_size,
        compute_units=units,
        max_parts=0,
        filter_string=f"{parent.filter_string}.{i}",
        aliases=(),
        parent=parent,
        sycl_device=sycl_device,
    )


def _same_hardware(
    a: PhysicalDevice, a_twin: _Twin, b: PhysicalDevice, b_twin: _Twin
) -> bool:
    if a.kind != b.kind or _route(a) == _route(b):
        return False
    if a.uuid_from_driver and b.uuid_from_driver:
        return a.uuid == b.uuid
    return a_twin == b_twin


def _route(device: PhysicalDevice) -> _Route:
    # A backend other than OpenCL may list each device in a platform of its own.
    platform_index = device.platform_index if device.backend == "opencl" else 0
    return (device.backend, platform_index)


def _preference(device: PhysicalDevice) -> tuple[int, str, int]:
    known = device.backend in BACKENDS
    rank = BACKENDS.index(device.backend) if known else len(BACKENDS)
    return (rank, device.backend, device.number)
