"""The devices of this machine, as dpctl lists them; the CPU device is always there."""

import json
import re
import uuid

import pytest
from own_process import output, run

from xpurt import _C
from xpurt.errors import MappingError
from xpurt.mapping import physical_devices
from xpurt.mapping.devices import PhysicalDevice, _describe, in_order, split


@pytest.fixture(scope="module")
def cpu() -> PhysicalDevice:
    return next(d for d in physical_devices() if d.kind == "cpu")


@pytest.fixture
def splittable(cpu: PhysicalDevice) -> PhysicalDevice:
    if cpu.compute_units < 2 or cpu.compute_units % 2:
        pytest.skip(f"{cpu.compute_units} compute units have no two equal parts")
    return cpu


def test_the_cpu_device_is_described(cpu: PhysicalDevice) -> None:
    assert cpu.backend == "opencl"
    assert re.fullmatch(r"opencl:cpu:\d", cpu.filter_string)
    assert cpu.name
    assert cpu.driver_version
    assert cpu.memory_bytes > 1 << 28
    assert cpu.compute_units >= 1
    assert cpu.sub_group_sizes
    assert cpu.host_accessible
    assert cpu.parent is None
    assert len(str(uuid.UUID(cpu.uuid))) == 36


def test_the_list_is_asked_for_once_and_is_in_order() -> None:
    devices = physical_devices()
    assert physical_devices() is devices
    assert in_order(devices) == devices


def test_uuids_are_different_and_the_same_in_every_process() -> None:
    mine = [d.uuid for d in physical_devices()]
    assert len(set(mine)) == len(mine)
    there = output(
        "import json\n"
        "from xpurt.mapping import physical_devices\n"
        "print(json.dumps([d.uuid for d in physical_devices()]))",
        XPURT_MAPPING="",
    )
    assert json.loads(there) == mine


def test_the_drivers_own_uuid_is_taken(cpu: PhysicalDevice) -> None:
    told = _C.device_uuid(cpu.address)
    if not told:
        pytest.skip("the driver tells no uuid")
    assert cpu.uuid_from_driver
    assert uuid.UUID(cpu.uuid).bytes == told


def test_without_the_drivers_uuid_one_is_made_up(
    cpu: PhysicalDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_C, "device_uuid", lambda address: b"")
    made_up = _describe(cpu.sycl_device, 0)
    assert not made_up.uuid_from_driver
    assert made_up.uuid != cpu.uuid
    assert made_up.uuid == _describe(cpu.sycl_device, 0).uuid


def test_equal_devices_may_hold_different_objects(cpu: PhysicalDevice) -> None:
    import dataclasses

    assert dataclasses.replace(cpu, sycl_device=None) == cpu
    assert cpu.address != 0


def test_equal_parts(splittable: PhysicalDevice) -> None:
    parts = split(splittable, 2)
    half = splittable.compute_units // 2
    assert [p.compute_units for p in parts] == [half, half]
    assert [p.filter_string for p in parts] == [
        f"{splittable.filter_string}.{i}" for i in range(2)
    ]
    assert len({p.uuid for p in (*parts, splittable)}) == 3
    assert all(p.parent is splittable for p in parts)
    assert [p.uuid for p in split(splittable, 2)] == [p.uuid for p in parts]


def test_parts_by_their_compute_units(cpu: PhysicalDevice) -> None:
    if not cpu.max_parts:
        pytest.skip("the driver does not split this device")
    assert [p.compute_units for p in split(cpu, (1,))] == [1]


def test_one_part_is_the_device_itself(cpu: PhysicalDevice) -> None:
    assert split(cpu, 1) == (cpu,)


def test_parts_that_do_not_divide(cpu: PhysicalDevice) -> None:
    with pytest.raises(MappingError, match="does not divide"):
        split(cpu, cpu.compute_units + 1)


def test_a_part_is_not_split_again(splittable: PhysicalDevice) -> None:
    part = split(splittable, (2,))[0]
    with pytest.raises(MappingError, match="its driver does not split it"):
        split(part, 2)


def test_numa_domains_are_parts_or_an_error(cpu: PhysicalDevice) -> None:
    try:
        parts = split(cpu, "numa")
    except MappingError as error:
        # The answer of a machine with one domain.
        assert f'{cpu} cannot be split by partition="numa"' in str(error)  # noqa: PT017
    else:
        assert sum(p.compute_units for p in parts) == cpu.compute_units


def test_without_a_driver_the_list_is_empty() -> None:
    # An empty list of drivers that the user has set is left alone.
    ended = run(
        "import os\n"
        "os.environ['OCL_ICD_FILENAMES'] = '/nowhere.so'\n"
        "os.environ['OCL_ICD_VENDORS'] = '/nowhere'\n"
        "os.environ['ONEAPI_DEVICE_SELECTOR'] = 'cuda:gpu'\n"
        "from xpurt.mapping import physical_devices\n"
        "print(physical_devices())",
        XPURT_MAPPING="",
    )
    assert ended.stdout == "()\n", ended.stderr


def test_importing_loads_no_driver() -> None:
    out = output(
        "import sys, xpurt\n"
        "from pathlib import Path\n"
        "xpurt.get_xpu_mapping()\n"
        "maps = Path('/proc/self/maps').read_text()\n"
        "print('dpctl' in sys.modules, 'libintelocl' in maps)\n"
        "xpurt.physical_devices()\n"
        "maps = Path('/proc/self/maps').read_text()\n"
        "print('dpctl' in sys.modules, 'libintelocl' in maps)",
        XPURT_MAPPING="",
    )
    assert out.split() == ["False", "False", "True", "True"]
