"""Machines of 1 to 64 devices, to compare policies on."""

from dataclasses import replace

from xpurt_tools.simulation.machine import SimulatedDevice

# One core of a server's CPU for each worker, and cards of three generations. Round
# numbers as in data sheets; PCIe of generation 3 and 4.
CPU = SimulatedDevice(
    "cpu", flops_per_us=1e6, bytes_per_us=1e5, launch_us=5, step_us=0.2, link_us=2,
    link_bytes_per_us=24e3,
)  # fmt: skip
CARDS = (
    SimulatedDevice(
        "large", flops_per_us=20e6, bytes_per_us=1.5e6, launch_us=10, step_us=2,
        link_us=10, link_bytes_per_us=24e3,
    ),
    SimulatedDevice(
        "middle", flops_per_us=10e6, bytes_per_us=8e5, launch_us=10, step_us=2,
        link_us=10, link_bytes_per_us=12e3,
    ),
    SimulatedDevice(
        "small", flops_per_us=4e6, bytes_per_us=3e5, launch_us=10, step_us=3,
        link_us=10, link_bytes_per_us=12e3,
    ),
)  # fmt: skip
# A desktop: a CPU of eight cores with two channels of DDR5-5600, and two cards by their
# data sheets: memory, matrix units in bfloat16, PCIe 4.0 with 16 and 8 lanes.
DESKTOP = SimulatedDevice("cpu", flops_per_us=2e6, bytes_per_us=89.6e3, launch_us=5)
RTX_4090 = SimulatedDevice(
    "GeForce RTX 4090", flops_per_us=165e6, bytes_per_us=1008e3, launch_us=10, link_us=10,
    link_bytes_per_us=32e3, memory_bytes=24e9,
)  # fmt: skip
ARC_B580 = SimulatedDevice(
    "Arc B580", flops_per_us=117e6, bytes_per_us=456e3, launch_us=10, link_us=10,
    link_bytes_per_us=16e3, memory_bytes=12e9,
)  # fmt: skip


def alike(devices: int) -> list[SimulatedDevice]:
    """Cards of one kind."""
    return [CARDS[1]] * devices


def mixed(devices: int) -> list[SimulatedDevice]:
    """A CPU and cards of three kinds in turn, the large one first."""
    kinds = (CARDS[0], CPU, CARDS[1], CARDS[2])
    return [kinds[number % len(kinds)] for number in range(devices)]


def lopsided(devices: int) -> list[SimulatedDevice]:
    """A card, and others that are 20 times slower."""
    slow = replace(CARDS[1], name="slow", speed=0.05)
    return [CARDS[1], *[slow] * (devices - 1)]


def one_memory(*speeds: float) -> list[SimulatedDevice]:
    """Parts of a CPU that share its memory, of these relative speeds."""
    whole = replace(CPU, launch_us=5, memory="host")
    return [replace(whole, name=f"part {i}", speed=s) for i, s in enumerate(speeds)]
