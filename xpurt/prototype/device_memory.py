"""The functions of `torch.<name>` for the memory and the properties of a prototype."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from xpurt import _prototype

Device = torch.device | str | int | None


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """What `torch.<name>.get_device_properties` returns.

    memory: as `xpurt.prototype_device` has it. computes_on: the device whose kernels
    compute, as "cpu" or "xpu:0". total_memory: in bytes. max_compute_units: those of
    the device that computes.
    """

    name: str
    memory: str
    computes_on: str
    total_memory: int
    max_compute_units: int


class DeviceMemory:
    """Counts what the tensors of the prototype have, on each of its devices.

    A prototype caches no memory: what is reserved is what is allocated, in blocks of the
    device behind. Not counted is what a kernel of the device behind needs while it
    runs, and what was refused: `num_ooms` is 0. Arguments `device` are the
    current device by default.
    """

    _type: str
    _memory: str

    def _index(self, device: Device) -> int:
        raise NotImplementedError

    def get_device_name(self, device: Device = None) -> str:
        raise NotImplementedError

    def memory_stats_as_nested_dict(self, device: Device = None) -> dict[str, Any]:
        """The counts of `torch.accelerator.memory_stats`, nested."""
        return _prototype.prototype_memory_stats(self._type, self._index(device))

    def memory_stats(self, device: Device = None) -> dict[str, Any]:
        """The counts of `torch.accelerator.memory_stats`, by names as
        "allocated_bytes.all.current"."""
        nested = self.memory_stats_as_nested_dict(device)
        return OrderedDict(sorted(_flat("", nested)))

    def memory_allocated(self, device: Device = None) -> int:
        """Bytes that tensors have."""
        return self._bytes("allocated_bytes", "current", device)

    def max_memory_allocated(self, device: Device = None) -> int:
        """The most bytes that tensors had since `reset_peak_memory_stats`."""
        return self._bytes("allocated_bytes", "peak", device)

    def memory_reserved(self, device: Device = None) -> int:
        """As `memory_allocated`: a prototype caches nothing."""
        return self._bytes("reserved_bytes", "current", device)

    def max_memory_reserved(self, device: Device = None) -> int:
        """As `max_memory_allocated`."""
        return self._bytes("reserved_bytes", "peak", device)

    def reset_peak_memory_stats(self, device: Device = None) -> None:
        """The peaks begin at what is allocated now."""
        _prototype.reset_prototype_memory_stats(self._type, self._index(device), True)

    def reset_accumulated_memory_stats(self, device: Device = None) -> None:
        """The counts of all that was allocated and freed begin at 0."""
        _prototype.reset_prototype_memory_stats(self._type, self._index(device), False)

    def mem_get_info(self, device: Device = None) -> tuple[int, int]:
        """The free bytes and all bytes of the device behind; of the host what this
        process may use."""
        return _prototype.prototype_memory_info(self._type, self._index(device))

    def empty_cache(self) -> None:
        """Gives memory that xpu caches back, with memory="xpu"; else does nothing."""
        _prototype.empty_prototype_cache(self._type)

    def get_device_properties(self, device: Device = None) -> DeviceProperties:
        """Raises IndexError if there is no such device."""
        index = self._index(device)
        total = self.mem_get_info(index)[1]
        on_xpu = self._memory == "xpu"
        return DeviceProperties(
            self.get_device_name(index),
            self._memory,
            f"xpu:{index}" if on_xpu else "cpu",
            total,
            torch.xpu.get_device_properties(index).max_compute_units
            if on_xpu
            else torch.get_num_threads(),
        )

    def get_device_capability(self, device: Device = None) -> dict[str, Any]:
        """As `torch.accelerator.get_device_capability`: "supported_dtypes" has the types
        that tensors may have."""
        dtypes = _prototype.prototype_dtypes(self._type, self._index(device))
        return {"supported_dtypes": dtypes}

    def _bytes(self, what: str, when: str, device: Device) -> int:
        counted: int = self.memory_stats_as_nested_dict(device)[what]["all"][when]
        return counted


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, int]]:
    if not isinstance(value, dict):
        yield prefix, value
        return
    for name, each in value.items():
        yield from _flat(f"{prefix}.{name}" if prefix else name, each)
