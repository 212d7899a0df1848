"""The costs of devices that nothing has measured."""

import pytest
from made_up_devices import ARC, CPU, FPGA, made_up

from xpurt.mapping.auto.costs import device_cost

INTEL, NVIDIA, AMD = 0x8086, 0x10DE, 0x1002
# Of data sheets: vendor, compute units as OpenCL counts them, MHz, smallest sub-group,
# TFLOP/s in float32, GB/s.
GPUS = {
    "Arc A380": (INTEL, 128, 2450, 8, 5.0, 186),
    "Arc A770": (INTEL, 512, 2400, 8, 19.7, 560),
    "Arc B580": (INTEL, 160, 2670, 16, 13.7, 456),
    "Arc 140V": (INTEL, 64, 2050, 16, 4.2, 136),
    "Iris Xe, 96 EU": (INTEL, 96, 1350, 8, 2.07, 68),
    "Max 1550": (INTEL, 1024, 1600, 16, 52.4, 3277),
    "RTX 2080 Ti": (NVIDIA, 68, 1545, 32, 13.4, 616),
    "RTX 3090": (NVIDIA, 82, 1695, 32, 35.6, 936),
    "RTX 4090": (NVIDIA, 128, 2520, 32, 82.6, 1008),
    "A100": (NVIDIA, 108, 1410, 32, 19.5, 1555),
    "H100": (NVIDIA, 132, 1980, 32, 66.9, 3350),
    "MI210": (AMD, 104, 1700, 64, 22.6, 1638),
    "RX 6800 XT": (AMD, 72, 2250, 32, 20.7, 512),
    "RX 7900 XTX": (AMD, 96, 2500, 32, 61.4, 960),
}


def test_an_accelerator_is_not_taken_for_a_gpu() -> None:
    """Until it is measured, a large op goes to a GPU before it, and a small one to the
    CPU, whose memory and launches are nearer."""
    cpu, gpu, accelerator = map(device_cost, (CPU, ARC, FPGA))
    assert accelerator.flops_per_us == cpu.flops_per_us < gpu.flops_per_us
    assert accelerator.bytes_per_us == cpu.bytes_per_us < gpu.bytes_per_us
    assert cpu.launch_us < gpu.launch_us < accelerator.launch_us
    assert cpu.copy_launch_us < gpu.copy_launch_us < accelerator.copy_launch_us


@pytest.mark.parametrize("name", GPUS)
def test_a_gpu_is_guessed_by_its_units_and_clock(name: str) -> None:
    """Half of the peak, and the memory's rate, each within 2.5 of the data sheet."""
    vendor, units, clock, lanes, tflops, gbytes = GPUS[name]
    cost = device_cost(
        made_up(
            "opencl:gpu:0",
            name,
            vendor_id=vendor,
            compute_units=units,
            clock_mhz=clock,
            sub_group_sizes=(lanes, 2 * lanes),
        )
    )
    assert tflops / 2.5 < 2 * cost.flops_per_us / 1e6 < tflops * 2.5
    assert gbytes / 2.5 < cost.bytes_per_us / 1e3 < gbytes * 2.5


@pytest.mark.parametrize("unknown", [{"clock_mhz": 0}, {"vendor_id": 0x13B5}])
def test_a_gpu_that_says_less_has_rates_per_unit(unknown: dict[str, int]) -> None:
    facts = {"vendor_id": INTEL, "clock_mhz": 2000, **unknown}
    some = device_cost(made_up("opencl:gpu:0", compute_units=8, **facts))
    more = device_cost(made_up("opencl:gpu:0", compute_units=16, **facts))
    assert some == device_cost(made_up("opencl:gpu:0", compute_units=8))
    assert more.flops_per_us == 2 * some.flops_per_us
