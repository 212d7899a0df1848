"""The current stream of a thread, and waiting for a device."""

import torch

from xpurt import _C
from xpurt.streams.classes import stream_of


def device_index(device: torch.device | int | str | None) -> int:
    """The ordinal of `device`; -1, the thread's current one, if it has no index."""
    if device is None:
        return -1
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type != "xpu":
        raise ValueError(f"Expected a xpu device, but got: {device}")
    return -1 if device.index is None else device.index


def current_stream(device: torch.device | int | str | None = None) -> torch.Stream:
    """The stream that receives this thread's work on `device`."""
    return stream_of(*_C.current_stream(device_index(device)))


def set_stream(stream: torch.Stream) -> None:
    """Makes `stream`, and its device, current in this thread."""
    _C.set_stream(stream.stream_id, stream.device_index, stream.device_type)


def synchronize(device: torch.device | int | str | None = None) -> None:
    """Waits for all streams of `device`, by default the current device.

    Raises RuntimeError, once, if work that was submitted earlier has failed.
    """
    _C.synchronize_device(device_index(device))
