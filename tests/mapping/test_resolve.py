"""Request times devices is placement, on machines that are made up."""

from dataclasses import replace

import pytest
from made_up_devices import (
    ALL,
    ARC,
    ARC_2,
    CPU,
    FPGA,
    NVIDIA,
    made_up,
    split_as_requested,
)

from xpurt.errors import MappingError
from xpurt.mapping.devices import PhysicalDevice, in_order, once_each
from xpurt.mapping.resolve import Placement, resolve
from xpurt.mapping.spec import Partition, parse


def place(
    mapping: str,
    devices: tuple[PhysicalDevice, ...] = ALL,
    *,
    only: list[str] | None = None,
    partition: Partition | None = None,
    overflow: str | None = None,
    max_devices: int = 16,
) -> Placement:
    return resolve(
        parse(mapping, only, partition, overflow),
        devices,
        split=split_as_requested,
        max_devices=max_devices,
    )


def names(placement: Placement) -> list[list[str]]:
    return [[d.filter_string for d in ordinal] for ordinal in placement.ordinals]


# -- order and identity ----------------------------------------------------------------


def test_gpus_come_first_and_cpus_last() -> None:
    assert ALL == (ARC, ARC_2, NVIDIA, FPGA, CPU)


def test_the_order_does_not_depend_on_who_answers_first() -> None:
    assert in_order(reversed(ALL)) == ALL
    ten = [made_up(f"opencl:gpu:{i}") for i in range(11)]
    assert [d.number for d in in_order(reversed(ten))] == list(range(11))


def test_two_gpus_on_two_backends_are_two_devices_on_opencl() -> None:
    listed = [
        made_up(f"{backend}:gpu:{i}", "Arc", platform_index=p)
        for p, backend in enumerate(("level_zero", "opencl"))
        for i in range(2)
    ]
    assert once_each(listed) == (
        replace(listed[2], aliases=("level_zero:gpu:0",)),
        replace(listed[3], aliases=("level_zero:gpu:1",)),
    )


def test_a_gpu_that_opencl_does_not_see_stays() -> None:
    opencl = made_up("opencl:gpu:0", "Arc")
    level_zero = [made_up(f"level_zero:gpu:{i}", "Arc") for i in range(2)]
    assert once_each([*level_zero, opencl]) == (
        replace(opencl, aliases=("level_zero:gpu:0",)),
        level_zero[1],
    )


def test_uuids_of_the_driver_decide_where_both_have_one() -> None:
    def gpu(filter_string: str, uuid: str) -> PhysicalDevice:
        return made_up(filter_string, "Arc", uuid=uuid, uuid_from_driver=True)

    crossed = [
        gpu("opencl:gpu:0", "a"),
        gpu("opencl:gpu:1", "b"),
        gpu("level_zero:gpu:0", "b"),
        gpu("level_zero:gpu:1", "a"),
        gpu("level_zero:gpu:2", "c"),
    ]
    assert [(d.filter_string, d.aliases) for d in once_each(crossed)] == [
        ("opencl:gpu:0", ("level_zero:gpu:1",)),
        ("opencl:gpu:1", ("level_zero:gpu:0",)),
        ("level_zero:gpu:2", ()),
    ]


def test_equal_uuids_on_one_route_are_two_devices() -> None:
    gpus = [
        made_up(f"opencl:gpu:{i}", "Arc", uuid="same", uuid_from_driver=True)
        for i in range(2)
    ]
    assert len(once_each(gpus)) == 2


def test_one_cpu_with_two_opencl_drivers_is_one_device() -> None:
    cpus = [made_up(f"opencl:cpu:{i}", "EPYC", platform_index=i) for i in range(2)]
    assert once_each(cpus) == (replace(cpus[0], aliases=("opencl:cpu:1",)),)


def test_a_cpu_and_a_gpu_of_one_name_are_two_devices() -> None:
    pair = [made_up(f"opencl:{kind}:0", "APU") for kind in ("cpu", "gpu")]
    assert len(once_each(pair)) == 2


def test_cuda_gpus_with_a_platform_each_are_several_devices() -> None:
    gpus = [made_up(f"cuda:gpu:{i}", "RTX", platform_index=i) for i in range(2)]
    assert len(once_each(gpus)) == 2


# -- the four mappings -----------------------------------------------------------------


def test_explicit_makes_every_device_an_ordinal() -> None:
    assert place("explicit").ordinals == tuple((d,) for d in ALL)


def test_cpu_is_one_ordinal() -> None:
    assert place("CPU").ordinals == ((CPU,),)
    other_driver = made_up("opencl:cpu:1", "Another driver")
    assert place("CPU", (CPU, other_driver)).ordinals == ((CPU,),)
    assert place("CPU", (CPU, other_driver), only=["opencl:cpu:1"]).ordinals == (
        (other_driver,),
    )


def test_gpu_is_an_ordinal_per_gpu() -> None:
    assert names(place("GPU")) == [["opencl:gpu:0"], ["opencl:gpu:1"], ["cuda:gpu:0"]]


def test_auto_is_one_ordinal_over_all() -> None:
    assert place("AUTO").ordinals == (ALL,)


def test_auto_restricts_and_orders() -> None:
    assert place("AUTO:CPU,GPU").ordinals == ((CPU, ARC, ARC_2, NVIDIA),)
    assert place("AUTO:gpu:1,CPU").ordinals == ((ARC_2, CPU),)


def test_auto_excludes() -> None:
    assert place("AUTO:-GPU").ordinals == ((FPGA, CPU),)
    assert place("AUTO:-accelerator").ordinals == ((ARC, ARC_2, NVIDIA, CPU),)
    assert place("AUTO:GPU,CPU,-cuda").ordinals == ((ARC, ARC_2, CPU),)
    # Excluding a device that is not there has no effect.
    assert place("AUTO:-GPU", (CPU,)).ordinals == ((CPU,),)


def test_home_is_the_first_device_that_the_host_can_read() -> None:
    assert place("AUTO").homes == (4,)
    assert place("AUTO:GPU").homes == (0,)
    assert place("explicit").homes == (0,) * 5
    integrated = made_up("opencl:gpu:0", host_accessible=True)
    assert place("AUTO", (integrated, CPU)).homes == (0,)


# -- devices= --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("only", "found"),
    [
        (["gpu"], [ARC, ARC_2, NVIDIA]),
        (["cpu", "gpu:0"], [CPU, ARC]),
        (["gpu:2"], [NVIDIA]),
        (["opencl:gpu:1"], [ARC_2]),
        # The device counts once, under the name of any backend.
        (["level_zero:gpu:1"], [ARC_2]),
        (["level_zero"], [ARC, ARC_2]),
        (["level_zero:gpu:0", "opencl:gpu:0"], [ARC]),
        (["cuda:0"], [NVIDIA]),
        (["opencl:3"], [CPU]),
        (["4"], [CPU]),
    ],
)
def test_filter_strings_choose(only: list[str], found: list[PhysicalDevice]) -> None:
    assert place("explicit", only=only).ordinals == tuple((d,) for d in found)


@pytest.mark.parametrize("one", ["opencl:gpu:2", "gpu:3", "hip", "level_zero:cpu:0"])
def test_a_filter_string_for_nothing_lists_what_there_is(one: str) -> None:
    with pytest.raises(MappingError) as caught:
        place("explicit", only=[one])
    assert f'there is no device "{one}"' in str(caught.value)
    for device in ALL:
        assert str(device) in str(caught.value)


# -- partition= ------------------------------------------------------------------------


def test_each_part_is_an_ordinal() -> None:
    assert names(place("explicit", (ARC, CPU), partition=2)) == [
        ["opencl:gpu:0.0"],
        ["opencl:gpu:0.1"],
        ["opencl:cpu:0.0"],
        ["opencl:cpu:0.1"],
    ]
    placement = place("explicit", (CPU,), partition=(1, 3))
    assert [d.compute_units for (d,) in placement.ordinals] == [1, 3]


def test_numa_domains_are_ordinals() -> None:
    placement = place("explicit", (CPU,), partition="numa")
    assert names(placement) == [["opencl:cpu:0.0"], ["opencl:cpu:0.1"]]
    assert all(d.parent == CPU for (d,) in placement.ordinals)


def test_auto_over_parts_is_one_ordinal() -> None:
    assert names(place("AUTO", (CPU,), partition=2)) == [
        ["opencl:cpu:0.0", "opencl:cpu:0.1"]
    ]


def test_only_chosen_devices_are_split() -> None:
    whole = made_up("opencl:gpu:0", compute_units=7)
    with pytest.raises(MappingError, match="7 compute units of opencl:gpu:0"):
        place("explicit", (whole, CPU), partition=2)
    assert len(place("explicit", (whole, CPU), only=["cpu"], partition=2).ordinals) == 2


def test_cpu_takes_one_part_at_most() -> None:
    (only,) = place("CPU", (CPU,), partition=(3,)).ordinals
    assert only[0].compute_units == 3
    with pytest.raises(MappingError, match=r'gives 2 devices.*"explicit"'):
        place("CPU", (CPU,), partition=2)
    with pytest.raises(MappingError, match="gives 2 devices"):
        place("CPU", (CPU, made_up("opencl:cpu:1", "x")), only=["cpu"])


# -- what cannot be --------------------------------------------------------------------


def test_gpu_without_a_gpu_lists_what_was_found() -> None:
    with pytest.raises(MappingError) as caught:
        place("GPU", (FPGA, CPU))
    assert str(caught.value) == (
        'mapping "GPU" wants a GPU; found opencl:accelerator:0 Made-up accelerator, '
        'opencl:cpu:0 Made-up cpu. Install a GPU driver, or use "CPU" or "AUTO".'
    )


def test_cpu_without_a_cpu() -> None:
    with pytest.raises(MappingError, match=r"wants a CPU; found opencl:gpu:0 Arc\."):
        place("CPU", (ARC,))
    with pytest.raises(MappingError, match=r"devices=\['gpu'\] wants a CPU"):
        place("CPU", only=["gpu"])


@pytest.mark.parametrize("mapping", ["explicit", "CPU", "GPU", "AUTO", "AUTO:-GPU"])
def test_no_device_at_all(mapping: str) -> None:
    with pytest.raises(MappingError, match=r"no SYCL device at all.*intel-opencl-rt"):
        place(mapping, ())


def test_auto_restricted_to_nothing() -> None:
    with pytest.raises(MappingError, match="leaves no device of those found: openc"):
        place("AUTO:-CPU", (CPU,))
    with pytest.raises(MappingError, match='there is no device "gpu"'):
        place("AUTO:GPU", (CPU,))
    with pytest.raises(MappingError, match="leaves no device"):
        place("AUTO:GPU,-GPU")


def test_more_ordinals_than_pytorch_was_told() -> None:
    with pytest.raises(MappingError, match=r"gives 8 ordinals.*at most 4"):
        place("explicit", (CPU,), partition=8, max_devices=4)


def test_under_overflow_each_gpu_has_the_host_as_home() -> None:
    placement = place("GPU", overflow="host")
    assert placement.ordinals == ((ARC, CPU), (ARC_2, CPU), (NVIDIA, CPU))
    assert placement.homes == (1, 1, 1)
    # An integrated GPU is not the home, and devices= names GPUs alone.
    integrated = replace(ARC, host_accessible=True, system_usm=True)
    assert place("GPU", (integrated, CPU), overflow="host").homes == (1,)
    assert place("GPU", only=["cuda:gpu"], overflow="host").ordinals == ((NVIDIA, CPU),)


def test_overflow_wants_a_cpu_device() -> None:
    with pytest.raises(MappingError, match=r'wants a CPU device.*overflow="off"'):
        place("GPU", (ARC, FPGA), overflow="host")


def test_more_devices_behind_one_ordinal_than_may_be() -> None:
    """Sets of them are words of 64 bits in C++."""
    with pytest.raises(MappingError, match=r"gives 8 devices behind xpu:0.*at most 4"):
        place("AUTO", (CPU,), partition=8, max_devices=4)
    assert len(place("AUTO", (CPU,), partition=8, max_devices=8).ordinals[0]) == 8
    many = [made_up(f"opencl:gpu:{i}") for i in range(65)]
    with pytest.raises(
        MappingError, match="XPURT_MAX_DEVICES is 64 at most: take fewer"
    ):
        place("AUTO", tuple(many), max_devices=64)


@pytest.mark.parametrize(
    ("mapping", "index", "message"),
    [
        ("CPU", 1, 'xpu:1 is out of range: mapping "CPU" has one device, xpu:0'),
        ("AUTO", -1, 'xpu:-1 is out of range: mapping "AUTO" has one device, xpu:0'),
        (
            "explicit",
            5,
            'xpu:5 is out of range: mapping "explicit" has 5 devices, xpu:0 to xpu:4',
        ),
    ],
)
def test_an_ordinal_out_of_range(mapping: str, index: int, message: str) -> None:
    placement = place(mapping)
    placement.check_index(0)
    with pytest.raises(MappingError) as caught:
        placement.check_index(index)
    assert str(caught.value) == message
