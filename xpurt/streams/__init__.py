"""Streams and events: SYCL's queues and events as PyTorch's.

A stream is an in-order SYCL queue (under AUTO one for each device of the ordinal).
`sycl_queue` and `stream_from_queue` convert to and from dpctl's queues without a copy.
"""

from xpurt.streams.classes import Event, Stream
from xpurt.streams.queues import stream_from_queue, sycl_queue
from xpurt.streams.waits import (
    current_stream,
    device_index,
    set_stream,
    synchronize,
)

__all__ = [
    "Event",
    "Stream",
    "current_stream",
    "device_index",
    "set_stream",
    "stream_from_queue",
    "sycl_queue",
    "synchronize",
]
