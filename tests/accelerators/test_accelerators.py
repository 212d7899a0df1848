"""Accelerators, which SYCL takes for GPUs: their kind, names, mappings, and ops on them.

An accelerator is the virtual GPU, or the CPU, beneath a layer that changes its type. Under
`make test-accelerator` it is an emulation of an FPGA.
"""

from typing import Any

import pytest
from accelerators.accelerator_child import beside_accelerator, seen

from xpurt.mapping.opencl_listing import own_filter_string

ACCELERATOR, CPU, GPU = "opencl:accelerator:0", "opencl:cpu:0", "opencl:gpu:0"


@pytest.fixture(scope="module")
def beside_cpu() -> Any:
    return seen(
        beside_accelerator(
            """
        found = {"devices": filters(xpurt.physical_devices()),
                 "kinds": [each.kind for each in xpurt.physical_devices()],
                 "explicit": placed("explicit"), "AUTO": placed("AUTO"),
                 "GPU": placed("GPU"), "CPU": placed("CPU"),
                 "AUTO:accelerator": placed("AUTO:accelerator"),
                 "AUTO:-accelerator": placed("AUTO:-accelerator"),
                 "AUTO:GPU": placed("AUTO:GPU"),
                 "named": placed("explicit", devices="opencl:accelerator:0"),
                 "by kind": placed("explicit", devices="accelerator"),
                 "as gpu": placed("explicit", devices="opencl:gpu:0")}
        xpurt.set_xpu_mapping("explicit")
        found["type"] = torch.xpu.get_device_properties(0).type
        found["sum"] = (torch.arange(1000., device="xpu:0") * 2).sum().item()
        xpurt.set_xpu_mapping("AUTO")
        ones = torch.ones(1 << 16, device="xpu")
        with xpurt.prefer("accelerator"):
            twos = ones + 1
        found["where"] = xpurt.where(twos)
        found["total"] = twos.sum().item()
        print(json.dumps(found))
            """,
            made_of="gpu",
        )
    )


def test_the_kind_is_not_that_which_sycl_gives(beside_cpu: Any) -> None:
    assert beside_cpu["devices"] == [ACCELERATOR, CPU]
    assert beside_cpu["kinds"] == ["accelerator", "cpu"]


@pytest.mark.parametrize(
    ("mapping", "ordinals"),
    [
        ("explicit", [[ACCELERATOR], [CPU]]),
        ("AUTO", [[ACCELERATOR, CPU]]),
        ("CPU", [[CPU]]),
        ("AUTO:accelerator", [[ACCELERATOR]]),
        ("AUTO:-accelerator", [[CPU]]),
        ("named", [[ACCELERATOR]]),
        ("by kind", [[ACCELERATOR]]),
    ],
)
def test_mappings_beside_a_cpu(
    beside_cpu: Any, mapping: str, ordinals: list[list[str]]
) -> None:
    assert beside_cpu[mapping] == ordinals


@pytest.mark.parametrize(
    ("mapping", "error"),
    [("GPU", "wants a GPU"), ("AUTO:GPU", 'no device "gpu"'), ("as gpu", "no device")],
)
def test_an_accelerator_is_no_gpu(beside_cpu: Any, mapping: str, error: str) -> None:
    assert error in beside_cpu[mapping]
    assert ACCELERATOR in beside_cpu[mapping]


def test_ops_run_on_an_accelerator(beside_cpu: Any) -> None:
    assert beside_cpu["type"] == "accelerator"
    assert beside_cpu["sum"] == 999_000
    assert beside_cpu["total"] == 2 << 16
    assert beside_cpu["where"] == [ACCELERATOR]


def test_numbers_of_gpus_are_not_shifted() -> None:
    found = seen(
        beside_accelerator(
            """
        import dpctl
        print(json.dumps({
            "devices": filters(xpurt.physical_devices()),
            "sycl": [each.get_filter_string() for each in dpctl.get_devices()],
            "GPU": placed("GPU"), "explicit": placed("explicit"), "AUTO": placed("AUTO"),
            "named": placed("explicit", devices=["accelerator:0", "opencl:gpu:0"])}))
            """,
            made_of="cpu",
        )
    )
    assert sorted(found.pop("sycl")) == [GPU, "opencl:gpu:1"]
    assert found == {
        "devices": [GPU, ACCELERATOR],
        "GPU": [[GPU]],
        "explicit": [[GPU], [ACCELERATOR]],
        "AUTO": [[GPU, ACCELERATOR]],
        "named": [[ACCELERATOR], [GPU]],
    }


@pytest.mark.parametrize(
    ("listed", "kind", "own"),
    [
        ("opencl:gpu:0", "accelerator", "opencl:accelerator:0"),
        ("opencl:gpu:1", "gpu", "opencl:gpu:0"),
        ("opencl:gpu:2", "accelerator", "opencl:accelerator:1"),
        ("opencl:gpu:3", "gpu", "opencl:gpu:1"),
        ("opencl:cpu:3", "cpu", "opencl:cpu:3"),
        ("level_zero:gpu:1", "gpu", "level_zero:gpu:1"),
    ],
)
def test_numbers_among_several(listed: str, kind: Any, own: str) -> None:
    assert own_filter_string(listed, kind, (0, 2)) == own


def test_parts_of_an_accelerator_are_accelerators() -> None:
    child = beside_accelerator(
        """
        (device,) = (d for d in xpurt.physical_devices() if d.kind == "accelerator")
        if device.max_parts and device.compute_units > 1:
            xpurt.set_xpu_mapping("explicit", devices="accelerator", partition=[1])
            print(json.dumps([ordinals(), torch.xpu.get_device_properties(0).type]))
        else:
            print("null")
        """,
        made_of="cpu",
    )
    found = seen(child)
    if found is None:
        pytest.skip("the driver does not split this device")
    assert found == [[[f"{ACCELERATOR}.0"]], "accelerator"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"XPURT_ACCELERATORS": "off"}, "XPURT_ACCELERATORS=off hides it"),
        ({"layer": False}, "start Python with XPURT_ACCELERATORS=on"),
    ],
)
def test_the_way_out_where_sycl_does_not_list_it(
    settings: dict[str, Any], reason: str
) -> None:
    child = beside_accelerator(
        """
        from xpurt.command_line.diagnosis import check_devices
        print(json.dumps([filters(xpurt.physical_devices()),
            [each.found for each in check_devices() if "can't" in each.found]]))
        """,
        made_of="gpu",
        **settings,
    )
    usable, unusable = seen(child)
    assert usable == [CPU]
    assert len(unusable) == 1
    assert unusable[0].startswith("opencl:accelerator ")
    assert reason in unusable[0]


def test_devices_and_doctor_say_what_it_is() -> None:
    child = beside_accelerator(
        """
        from xpurt.command_line.cli import main
        from xpurt.command_line.diagnosis import check_devices
        main(["devices"])
        print(json.dumps([each.found for each in check_devices() if each.is_note]))
        """,
        made_of="gpu",
    )
    (note,) = seen(child)
    assert note.startswith(f"{ACCELERATOR}  an accelerator")
    table, _, notes = child.stdout.partition("\n\n")
    assert ACCELERATOR in table
    assert "an accelerator, which SYCL takes for a GPU" in notes
