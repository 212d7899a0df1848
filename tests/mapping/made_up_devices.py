"""Devices that are only records, and a driver that splits them."""

from dataclasses import replace
from typing import Any

from xpurt.mapping.devices import PhysicalDevice, in_order
from xpurt.mapping.spec import Partition, parts_in_compute_units


def made_up(filter_string: str, name: str = "", **more: Any) -> PhysicalDevice:
    """A device that is only a record; `filter_string` is backend:kind:number."""
    backend, kind, _ = filter_string.split(":")
    fields = {
        "name": name or f"Made-up {kind}",
        "kind": kind,
        "backend": backend,
        "vendor": "Nobody",
        "platform": f"{backend} platform",
        "driver_version": "1.0",
        "uuid": f"uuid of {filter_string}",
        "uuid_from_driver": False,
        "memory_bytes": 1 << 30,
        "compute_units": 8,
        "max_parts": 8,
        "has_fp64": True,
        "has_fp16": True,
        "system_usm": kind == "cpu",
        "host_accessible": kind == "cpu",
        "sub_group_sizes": (16,),
        "filter_string": filter_string,
    }
    return PhysicalDevice(**{**fields, **more})


CPU = made_up("opencl:cpu:0")
ARC = made_up("opencl:gpu:0", "Arc", aliases=("level_zero:gpu:0",))
ARC_2 = made_up("opencl:gpu:1", "Arc", aliases=("level_zero:gpu:1",))
NVIDIA = made_up("cuda:gpu:0", "RTX")
FPGA = made_up("opencl:accelerator:0")
ALL = in_order([CPU, FPGA, NVIDIA, ARC_2, ARC])


def split_as_requested(
    device: PhysicalDevice, partition: Partition
) -> tuple[PhysicalDevice, ...]:
    """A driver that makes every requested part, and has two NUMA domains."""
    if partition == "numa":
        partition = 2
    units = parts_in_compute_units(partition, device.compute_units, str(device))
    return tuple(
        replace(
            device,
            compute_units=count,
            parent=device,
            filter_string=f"{device.filter_string}.{i}",
        )
        for i, count in enumerate(units)
    )
