"""The placement of a rank of torchrun, on machines that are made up."""

import pytest
from mapping.test_resolve import ALL, ARC, ARC_2, CPU

from xpurt.mapping.rank_placement import device_of, placement_of
from xpurt.startup.launch import LocalRank


def test_each_rank_has_its_gpu() -> None:
    devices = (ARC, ARC_2, CPU)
    assert [device_of(LocalRank(n, 2), devices) for n in (0, 1)] == [ARC, ARC_2]
    _, placement = placement_of(LocalRank(1, 2), devices, 16)
    assert placement.ordinals == ((ARC_2,), (ARC_2,))


def test_ranks_share_gpus_with_one_warning() -> None:
    with pytest.warns(RuntimeWarning, match="4 ranks share 2 GPUs"):
        placement_of(LocalRank(0, 4), (ARC, ARC_2), 16)
    _, placement = placement_of(LocalRank(3, 4), (ARC, ARC_2), 16)
    assert placement.ordinals == ((ARC_2,),) * 4


def test_without_a_gpu_it_is_the_cpu_device() -> None:
    spec, placement = placement_of(LocalRank(1, 3), (CPU,), 2)
    assert placement.ordinals == ((CPU,), (CPU,))
    assert str(spec) == "\"explicit\", devices=['opencl:cpu:0']"


def test_any_device_is_better_than_none() -> None:
    accelerators = tuple(each for each in ALL if each.kind == "accelerator")
    assert device_of(LocalRank(0, 2), accelerators) == accelerators[0]
