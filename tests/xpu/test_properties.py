"""Device properties: what the driver reports, and nothing else."""

import uuid

import dpctl
import pytest
import torch

from xpurt import streams
from xpurt.xpu.properties import FIELDS, DeviceProperties, of_ordinal

LEAD = {
    "name": "one",
    "has_fp64": True,
    "total_memory": 10,
    "max_work_group_size": 512,
    "sub_group_sizes": [8, 16, 32],
    "gpu_eu_count": 96,
    "uuid": bytes(range(16)),
}
OTHER = {
    "name": "two",
    "has_fp64": False,
    "total_memory": 5,
    "max_work_group_size": 8192,
    "sub_group_sizes": [16, 32, 64],
    "uuid": bytes(16),
}


def test_an_ordinal_of_several_devices() -> None:
    facts = of_ordinal([LEAD, OTHER])
    assert facts == {
        "name": "one",
        "has_fp64": False,
        "total_memory": 15,
        "max_work_group_size": 512,
        "sub_group_sizes": [16, 32],
        "uuid": uuid.UUID(bytes=bytes(range(16))),
    }
    assert of_ordinal([OTHER, LEAD])["name"] == "two"


def test_a_field_that_is_not_reported() -> None:
    properties = DeviceProperties(of_ordinal([{**OTHER, "max_compute_units": 7}]))
    assert properties.gpu_eu_count == properties.device_id == 0
    assert properties.memory_clock_rate == properties.memory_bus_width == 0
    assert properties.gpu_subslice_count == 7
    with pytest.raises(AttributeError, match="no property 'warp_size'"):
        _ = properties.warp_size
    with pytest.raises(AttributeError, match="cannot be changed"):
        properties.name = "three"


def test_equality() -> None:
    one, again = DeviceProperties(LEAD), DeviceProperties(dict(LEAD))
    assert one == again
    assert hash(one) == hash(again)
    assert one != DeviceProperties(OTHER)
    assert one != "one"


def test_the_device_at_hand(xpu: torch.device) -> None:
    properties = torch.xpu.get_device_properties(xpu)
    assert isinstance(properties, torch._C._XpuDeviceProperties)
    assert properties == torch.xpu.get_device_properties(0)
    home = streams.sycl_queue(torch.xpu.current_stream(xpu)).sycl_device
    if isinstance(home, dpctl.SyclDevice) and torch.xpu.get_device_name() == home.name:
        assert properties.driver_version == home.driver_version
        assert properties.vendor == home.vendor
    assert properties.total_memory >= home.global_mem_size
    assert set(properties.sub_group_sizes) <= set(home.sub_group_sizes)
    assert len(properties.uuid.bytes) == 16
    assert len(str(properties.uuid)) == 36
    assert list(vars(properties)) == list(FIELDS)
    assert len(FIELDS) == 28
    # The fields that PyTorch itself reads.
    assert isinstance(properties.has_fp64, bool)


def test_the_capability_is_the_properties(xpu: torch.device) -> None:
    capability = torch.xpu.get_device_capability(xpu)
    properties = torch.xpu.get_device_properties(xpu)
    assert capability["name"] == properties.name
    assert "uuid" not in capability
    assert torch.xpu.is_bf16_supported()
    assert (
        torch.xpu.is_bf16_supported(including_emulation=False)
        is properties.has_bfloat16_conversions
    )
    assert (
        torch.xpu.is_tf32_supported()
        is properties.has_subgroup_matrix_multiply_accumulate
    )
