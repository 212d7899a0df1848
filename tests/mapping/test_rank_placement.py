"""The placement of a rank that a launcher started, on machines that are made up."""

import warnings

import pytest
from mapping.test_resolve import ALL, ARC, ARC_2, CPU, FPGA, NVIDIA, place

from xpurt.errors import MappingError
from xpurt.mapping.devices import PhysicalDevice
from xpurt.mapping.rank_placement import default_mapping, placement_of
from xpurt.mapping.resolve import Placement
from xpurt.mapping.spec import parse
from xpurt.startup.launch import LocalRank

FIRST, SECOND = LocalRank(0, 2), LocalRank(1, 2)


def placed(
    rank: LocalRank,
    mapping: str,
    devices: tuple[PhysicalDevice, ...] = ALL,
    *,
    only: list[str] | None = None,
    max_devices: int = 16,
) -> Placement:
    whole = place(mapping, devices, only=only)
    spec = parse(mapping, only)
    return placement_of(rank, spec, whole, max_devices)


def test_each_rank_has_its_gpu_behind_all_ordinals() -> None:
    two = (ARC, ARC_2, CPU)
    assert placed(FIRST, "GPU", two).ordinals == ((ARC,), (ARC,))
    assert placed(SECOND, "GPU", two).ordinals == ((ARC_2,), (ARC_2,))


def test_under_overflow_each_rank_has_its_gpu_and_the_host() -> None:
    spec = parse("GPU", overflow="host")
    whole = place("GPU", (ARC, ARC_2, CPU), overflow="host")
    for rank, gpu in ((FIRST, ARC), (SECOND, ARC_2)):
        placement = placement_of(rank, spec, whole, 16)
        assert placement.ordinals == ((gpu, CPU),) * 2
        assert placement.homes == (1, 1)


def test_the_mapping_cpu_has_an_ordinal_per_rank() -> None:
    assert placed(LocalRank(1, 3), "CPU").ordinals == ((CPU,),) * 3


def test_auto_has_one_device_of_each_kind() -> None:
    assert placed(FIRST, "AUTO").ordinals == ((ARC, FPGA, CPU),) * 2
    assert placed(SECOND, "AUTO").ordinals == ((ARC_2, FPGA, CPU),) * 2
    assert placed(LocalRank(2, 3), "AUTO").ordinals == ((NVIDIA, FPGA, CPU),) * 3
    assert placed(SECOND, "AUTO:CPU,GPU").ordinals == ((CPU, ARC_2),) * 2
    assert placed(SECOND, "AUTO:-GPU").ordinals == ((FPGA, CPU),) * 2
    assert placed(SECOND, "AUTO", (CPU,)).ordinals == ((CPU,),) * 2


@pytest.mark.parametrize(
    ("devices", "mapping"),
    [(ALL, "GPU"), ((FPGA, CPU), "CPU"), ((FPGA,), "AUTO"), ((), "AUTO")],
)
def test_without_a_request(devices: tuple[PhysicalDevice, ...], mapping: str) -> None:
    assert default_mapping(devices) == mapping


def test_ranks_share_gpus_with_one_warning() -> None:
    two = (ARC, ARC_2)
    with pytest.warns(RuntimeWarning, match="4 ranks share 2 GPUs"):
        placed(LocalRank(0, 4), "GPU", two)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert placed(LocalRank(3, 4), "GPU", two).ordinals == ((ARC_2,),) * 4
        placed(FIRST, "GPU", two)
        placed(LocalRank(0, 4), "CPU", (ARC, CPU))
    with pytest.warns(RuntimeWarning, match=r"2 ranks share 1 GPU\."):
        placed(FIRST, "AUTO", (ARC, CPU))


@pytest.mark.parametrize(("mapping", "only"), [("explicit", None), ("CPU", ["cpu"])])
def test_a_request_of_devices_decides_alone(
    mapping: str, only: list[str] | None
) -> None:
    whole = place(mapping, (CPU,), only=only)
    found = placed(SECOND, mapping, (CPU,), only=only)
    assert found.ordinals == whole.ordinals == ((CPU,),)
    with pytest.raises(MappingError) as caught:
        found.check_index(1)
    assert f'mapping "{mapping}" has one device, xpu:0. A launcher' in str(caught.value)
    assert 'With the mapping "CPU", "GPU" or "AUTO", or none' in str(caught.value)
    assert "xpu:0 to xpu:1, with its own part" in str(caught.value)


def test_more_ranks_than_ordinals() -> None:
    few = placed(LocalRank(0, 20), "CPU")
    assert len(few.ordinals) == 16
    with pytest.raises(MappingError, match="XPURT_MAX_DEVICES=20 before they start"):
        few.check_index(16)


def test_alone_the_error_says_nothing_of_launchers() -> None:
    with pytest.raises(MappingError, match=r'mapping "CPU" has one device, xpu:0$'):
        place("CPU").check_index(1)
