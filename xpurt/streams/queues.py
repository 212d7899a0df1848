"""dpctl's queues as xpu streams, and the reverse. Nothing is copied."""

from typing import Any

import torch

from xpurt import _C
from xpurt.mapping import queue_from_capsule
from xpurt.streams.classes import stream_of


def stream_from_queue(queue: Any) -> torch.Stream:
    """The stream around a ``dpctl.SyclQueue``.

    Work submitted to the queue and work submitted to the stream run in the order of
    submission. The same queue gives an equal stream every time. The stream keeps the
    queue alive.

    Raises ValueError if the queue is out-of-order, or if it belongs to a device that
    is behind no ordinal, or to a SYCL context that does not have the ordinal's memory.
    """
    address = queue.addressof_ref()
    return stream_of(*_C.external_stream(address, _C.ordinal_of_queue(address)))


def sycl_queue(stream: torch.Stream | None = None) -> Any:
    """The queue of a stream as a ``dpctl.SyclQueue``; by default of the current one.

    Under AUTO it is the queue of the device that holds the home copies.
    """
    if stream is None:
        stream = torch.xpu.current_stream()
    if stream.device.type != "xpu":
        raise ValueError(
            f"a stream of xpu has a SYCL queue; this one is on {stream.device}"
        )
    return queue_from_capsule(_C.queue_capsule(stream.stream_id, stream.device_index))
