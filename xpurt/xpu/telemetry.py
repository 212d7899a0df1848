"""Sensors of the device: PyTorch reads them through Level Zero Sysman.

Sysman counts the GPUs of Level Zero, which are not xpurt's ordinals. Our devices are
OpenCL's: a number read there would be another device's. So most of these functions
raise.
"""

from typing import Any, NoReturn

from torch.types import Device

from xpurt import _C
from xpurt.streams import device_index
from xpurt.xpu.properties import device_properties


def _refuse(what: str, device: Device) -> NoReturn:
    index = device_index(device)
    name = device_properties(index).name
    raise RuntimeError(
        f"the {what} of {name} is not known: neither SYCL nor OpenCL tells it. Use the "
        "tools of the system, or of the GPU's vendor."
    )


def temperature(device: Device = None) -> int:
    _refuse("temperature", device)


def clock_rate(device: Device = None) -> int:
    _refuse("clock rate", device)


def power_draw(device: Device = None) -> float:
    _refuse("power draw", device)


def utilization(device: Device = None) -> float:
    _refuse("utilization", device)


def memory_usage(device: Device = None) -> float:
    _refuse("memory bandwidth usage", device)


def device_memory_used(device: Device = None) -> int:
    """Bytes of the device's memory that are in use, by all processes.

    Raises RuntimeError if the driver does not report it.
    """
    free, total = _C.memory_info(device_index(device))
    return total - free


DIFFERENCES: dict[str, Any] = {
    each.__name__: each
    for each in (
        temperature,
        clock_rate,
        power_draw,
        utilization,
        memory_usage,
        device_memory_used,
    )
}
