"""The placement of a rank that torchrun started.

Note [A mapping and a launcher]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
The ranks of one machine divide its devices among them. A program uses its rank's number
as an index: ``torch.xpu.set_device(LOCAL_RANK)``, ``init_device_mesh``. So each rank has
as many ordinals as there are ranks, and its own part is behind all of them: a program
that uses no index gets it, too.

A mapping that is requested, "CPU", "GPU" or "AUTO", names the kinds of the devices. Only
"explicit", ``devices=`` and ``partition=`` name the devices themselves. They decide
alone. Without a request a rank gets its GPU if there is one, else the CPU device: a GPU
and the CPU device together, as "AUTO" has them, have to be asked for.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace

from xpurt.mapping.devices import PhysicalDevice
from xpurt.mapping.resolve import Placement
from xpurt.mapping.spec import KINDS, MappingName, MappingSpec
from xpurt.startup.launch import LocalRank


def default_mapping(devices: Sequence[PhysicalDevice]) -> MappingName:
    """The mapping of a rank that requests none."""
    kinds = {device.kind for device in devices if not device.left_to}
    return "GPU" if "gpu" in kinds else "CPU" if "cpu" in kinds else "AUTO"


def part_of(
    rank: LocalRank, devices: Sequence[PhysicalDevice]
) -> tuple[PhysicalDevice, ...]:
    """The rank's devices, in their order: one of each kind. Ranks share a device if
    there are more of them. The CPU device follows the rank's processors.
    """
    own = set()
    for kind in KINDS:
        of_kind = [each.filter_string for each in devices if each.kind == kind]
        if of_kind:
            own.add(of_kind[rank.number % len(of_kind)])
    return tuple(each for each in devices if each.filter_string in own)


def placement_of(
    rank: LocalRank, spec: MappingSpec, whole: Placement, max_devices: int
) -> Placement:
    """The placement for the rank. Gives a warning if ranks share a GPU.

    whole: what the request gives to a process that is alone.
    """
    remark = launch_remark(rank, spec, max_devices)
    if spec.decides_alone:
        return replace(whole, remark=remark)
    # The leads come first, then the devices that several ordinals may share.
    by_position = zip(*whole.ordinals, strict=True)
    devices = list(dict.fromkeys(each for column in by_position for each in column))
    gpus = sum(each.kind == "gpu" for each in devices)
    if gpus and rank.count > gpus and rank.number == 0:
        warnings.warn(
            f"{rank.count} ranks share {gpus} GPU{'s'[: gpus != 1]}. Start torchrun with "
            f"--nproc-per-node {gpus} for one each.",
            RuntimeWarning,
            stacklevel=2,
        )
    ordinals = (part_of(rank, devices),) * min(rank.count, max_devices)
    return replace(whole, ordinals=ordinals, remark=remark)


def launch_remark(rank: LocalRank, spec: MappingSpec, max_devices: int) -> str:
    """What an error about an ordinal that the rank does not have adds."""
    started = f"A launcher has started {rank.count} processes here"
    if spec.decides_alone:
        return (
            f'{started}. With the mapping "CPU", "GPU" or "AUTO", or none, and without '
            "devices= and partition=, each of them has an ordinal for each, xpu:0 to "
            f"xpu:{rank.count - 1}, with its own part of the devices."
        )
    if rank.count > max_devices:
        return f"{started}: set XPURT_MAX_DEVICES={rank.count} before they start."
    return ""
