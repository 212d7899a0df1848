"""The placement for a rank that torchrun started, where no mapping was requested."""

import warnings
from collections.abc import Sequence

from xpurt.mapping.devices import PhysicalDevice, physical_devices
from xpurt.mapping.resolve import Placement
from xpurt.mapping.spec import MappingSpec, parse_filter
from xpurt.startup.launch import LocalRank, local_rank


def placement_of_this_rank(max_devices: int) -> tuple[MappingSpec, Placement] | None:
    """The placement of this process; None if it is no such rank, or has no device."""
    rank = local_rank()
    devices = [each for each in physical_devices() if not each.left_to] if rank else []
    if rank is None or not devices:
        return None
    return placement_of(rank, devices, max_devices)


def device_of(rank: LocalRank, devices: Sequence[PhysicalDevice]) -> PhysicalDevice:
    """The rank's GPU if there are any, which ranks share if there are more of them.
    Else the CPU device, which follows the rank's processors."""
    gpus = [each for each in devices if each.kind == "gpu"]
    if gpus:
        return gpus[rank.number % len(gpus)]
    return next((each for each in devices if each.kind == "cpu"), devices[0])


def placement_of(
    rank: LocalRank, devices: Sequence[PhysicalDevice], max_devices: int
) -> tuple[MappingSpec, Placement]:
    """One ordinal for each rank, so that ``torch.xpu.set_device(LOCAL_RANK)`` is
    possible. This rank's own device is behind all of them: a program that names no
    ordinal uses it, too. Gives a warning if ranks share a GPU.
    """
    own = device_of(rank, devices)
    gpus = sum(each.kind == "gpu" for each in devices)
    if own.kind == "gpu" and rank.count > gpus and rank.number == 0:
        warnings.warn(
            f"{rank.count} ranks share {gpus} GPUs. Start torchrun with "
            f"--nproc-per-node {gpus} for one each.",
            RuntimeWarning,
            stacklevel=2,
        )
    spec = MappingSpec("explicit", devices=(parse_filter(own.filter_string),))
    count = min(rank.count, max_devices)
    return spec, Placement(spec.mapping, ((own,),) * count)
