"""What this process requests, and what it gets: from its variables, its devices and its
launcher."""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from xpurt.config import config
from xpurt.errors import ConfigError, MappingError
from xpurt.mapping import devices as _devices
from xpurt.mapping.devices import physical_devices, unusable_devices
from xpurt.mapping.rank_placement import default_mapping, placement_of
from xpurt.mapping.resolve import Placement, resolve
from xpurt.mapping.spec import MappingSpec, parse
from xpurt.startup import launch

# The mapping if XPURT_MAPPING names none; under a launcher see default_mapping().
DEFAULT = "AUTO"

# A driver makes new parts at each request, and data kept for a device is kept for the
# life of the process. So a mapping that is set again gets the same parts.
_split = functools.cache(_devices.split)


def requested_mapping() -> MappingSpec:
    """What XPURT_MAPPING names. Raises MappingError if it is no mapping, and ConfigError
    if XPURT_GPU_OVERFLOW has no meaning under it."""
    try:
        spec = request(config().mapping or DEFAULT)
    except MappingError as error:
        raise MappingError(f"XPURT_MAPPING: {error}") from None
    if config().gpu_overflow != "off" and config().mapping and spec.name != "GPU":
        raise ConfigError(
            f'XPURT_GPU_OVERFLOW="{config().gpu_overflow}" belongs to the mapping "GPU", '
            f'and XPURT_MAPPING is "{config().mapping}". Set XPURT_MAPPING=GPU, or unset '
            "XPURT_GPU_OVERFLOW."
        )
    return spec


def request(
    mapping: str = DEFAULT,
    devices: str | Iterable[str] | None = None,
    partition: int | Sequence[int] | str | None = None,
    overflow: str | None = None,
) -> MappingSpec:
    """The spec for the arguments of `set_xpu_mapping`, which XPURT_GPU_OVERFLOW
    completes. Raises as `parse` does."""
    spec = parse(mapping, devices, partition, overflow)
    if spec.name == "GPU" and overflow is None:
        return replace(spec, overflow=config().gpu_overflow)
    return spec


def placement_for_rank(rank: launch.LocalRank) -> Placement:
    """What a process gets that a launcher starts as this rank, and that sets no mapping
    itself. Raises MappingError if the devices cannot give what XPURT_MAPPING requests.
    """
    return placement_of_process(first_mapping(rank), rank)


def first_mapping(rank: launch.LocalRank | None) -> MappingSpec:
    """The mapping until the program sets one."""
    spec = requested_mapping()
    if config().mapping or rank is None:
        return spec
    return request(default_mapping(physical_devices()))


def placement_of_process(spec: MappingSpec, rank: launch.LocalRank | None) -> Placement:
    """What a request gives this process, which the launcher started as `rank`, if any.
    Raises MappingError if the devices cannot give it."""
    launch.decide_part(not spec.decides_alone)
    most = config().max_devices
    placement = resolve(
        spec,
        physical_devices(),
        split=_split,
        max_devices=most,
        unusable=unusable_devices(),
    )
    return placement_of(rank, spec, placement, most) if rank else placement
