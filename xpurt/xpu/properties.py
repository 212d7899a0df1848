"""What ``torch.xpu.get_device_properties`` returns."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from xpurt import _C

FIELDS: Final = (
    "name",
    "platform_name",
    "vendor",
    "device_id",
    "driver_version",
    "version",
    "max_compute_units",
    "gpu_eu_count",
    "max_work_group_size",
    "max_num_sub_groups",
    "memory_clock_rate",
    "memory_bus_width",
    "sub_group_sizes",
    "local_mem_size",
    "last_level_cache_size",
    "has_fp16",
    "has_fp64",
    "has_atomic64",
    "has_bfloat16_conversions",
    "has_subgroup_matrix_multiply_accumulate",
    "has_subgroup_matrix_multiply_accumulate_tensor_float32",
    "has_subgroup_2d_block_io",
    "is_integrated_gpu",
    "total_memory",
    "gpu_subslice_count",
    "architecture",
    "type",
    "uuid",
)

# PyTorch's values for facts that a driver does not report. `gpu_subslice_count` is not
# here: PyTorch divides work by it, so it defaults to the number of compute units.
_UNREPORTED: Final[dict[str, Any]] = {
    "device_id": 0,
    "gpu_eu_count": 0,
    "memory_clock_rate": 0,
    "memory_bus_width": 0,
    "architecture": 0,
    "uuid": uuid.UUID(int=0),
}

# Limits: an ordinal has the smallest value of its devices.
_LIMITS: Final = (
    "max_compute_units",
    "max_work_group_size",
    "max_num_sub_groups",
    "local_mem_size",
    "last_level_cache_size",
)


class DeviceProperties:
    """The properties of an xpu device, as its driver reports them.

    For an ordinal of several devices: a capability that all of them have, the smallest
    limit, the sum of their memories, and else the first device's value. Every field is
    there. A number that the driver does not report is 0, except for
    `gpu_subslice_count`, which is then `max_compute_units`.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        defaults = {
            **_UNREPORTED,
            "gpu_subslice_count": facts.get("max_compute_units", 0),
        }
        known = {**defaults, **facts}
        self.__dict__.update({f: known[f] for f in FIELDS if f in known})

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"xpu devices have no property {name!r}", name=name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("the properties of a device cannot be changed")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceProperties):
            return NotImplemented
        return vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((vars(self).get("name"), str(vars(self).get("uuid"))))

    def __repr__(self) -> str:
        shown = ", ".join(f"{f}={v!r}" for f, v in vars(self).items())
        # Reports such as torch.utils.collect_env's show by this that xpu is xpurt's.
        return f"_XpuDeviceProperties({shown}, runtime='xpurt')"


def device_properties(index: int) -> DeviceProperties:
    """The properties of xpu:`index`; -1 is the current device.

    Raises RuntimeError if there is no such device.
    """
    return DeviceProperties(of_ordinal(_C.device_facts(index)))


def of_ordinal(devices: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One set of facts for the devices of an ordinal, the lead device first."""
    lead = devices[0]
    facts = {f: v for f, v in lead.items() if all(f in each for each in devices)}
    for field, value in facts.items():
        values = [each[field] for each in devices]
        if isinstance(value, bool):
            facts[field] = all(values)
        elif field in _LIMITS:
            facts[field] = min(values)
    facts["sub_group_sizes"] = [
        size
        for size in lead["sub_group_sizes"]
        if all(size in each["sub_group_sizes"] for each in devices)
    ]
    facts["total_memory"] = sum(each["total_memory"] for each in devices)
    if "uuid" in facts:
        facts["uuid"] = uuid.UUID(bytes=facts["uuid"])
    return facts
