"""The classes that ``torch.xpu.Stream`` and ``torch.xpu.Event`` are derived from."""

from typing import Any, NoReturn, Self

import torch

from xpurt import _C

_XPU = torch.device("xpu")


class Stream(torch.Stream):
    """A queue of work on an xpu device; its work runs in order.

    priority: lower numbers run first. A value outside of `priority_range` counts as the
        nearer end. It is a hint to the driver, which may ignore it.
    stream_id, device_index, device_type: identify an existing stream; the new object
        stands for it.
    """

    def __new__(
        cls,
        priority: int = 0,
        stream_id: int = 0,
        device_index: int = 0,
        device_type: int = 0,
    ) -> Self:
        if stream_id or device_index or device_type:
            return super().__new__(
                cls,
                stream_id=stream_id,
                device_index=device_index,
                device_type=device_type,
            )
        return super().__new__(
            cls, torch.device("xpu", _C.current_device()), priority=priority
        )

    @property
    def sycl_queue(self) -> int:
        """The address of the ``sycl::queue``; valid for the life of the process.

        Under AUTO it is the queue of the device that holds the home copies.
        `xpurt.streams.sycl_queue` gives the queue as dpctl's object.
        """
        handle: int = self.native_handle  # type: ignore[attr-defined]
        return handle

    @property
    def priority(self) -> int:
        return _C.stream_priority(self.stream_id, self.device_index)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The numbers of the lowest and of the highest priority, in this order."""
        return _C.priority_range()


class Event(torch.Event):
    """A mark in a stream: complete when everything submitted before it is.

    enable_timing: whether `elapsed_time` can use it.
    interprocess: of PyTorch 2.15; nothing but False is possible.
    """

    def __new__(cls, enable_timing: bool = False, interprocess: bool = False) -> Self:
        if interprocess:
            _refuse_to_share()
        return super().__new__(cls, _XPU, enable_timing=enable_timing)

    @property
    def sycl_event(self) -> int:
        """The address of the ``sycl::event``; 0 before the first record."""
        handle: int = self.event_id
        return handle

    def record(self, stream: torch.Stream | None = None) -> None:
        """Puts the mark behind all work submitted to `stream`, by default the current
        one."""
        super().record(_checked(stream))

    def wait(self, stream: torch.Stream | None = None) -> None:
        """Later work of `stream`, by default the current one, starts after the mark."""
        super().wait(_checked(stream))

    def ipc_handle(self) -> NoReturn:
        """Raises NotImplementedError."""
        _refuse_to_share()

    @classmethod
    def from_ipc_handle(cls, device: Any, ipc_handle: bytes) -> NoReturn:
        """Raises NotImplementedError."""
        _refuse_to_share()

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from the completion of this event's mark to `end_event`'s.

        Raises ValueError unless both are timed and recorded. Raises RuntimeError while
        one of them is not complete, or if `end_event` is no event of `torch.xpu`.
        """
        # PyTorch's own method accepts nothing but an exact torch.Event.
        if not isinstance(end_event, Event):
            raise RuntimeError(
                "expected other to be a torch.xpu.Event object, but got "
                f"{type(end_event).__name__}"
            )
        return _C.event_elapsed_ms(self, end_event)


def _refuse_to_share() -> NoReturn:
    raise NotImplementedError(
        "an event of xpu can't be shared with another process: SYCL's events have no "
        "ipc_handle. Wait for the event here, and tell the other process by an "
        "event of multiprocessing."
    )


def _checked(stream: Any) -> Any:
    if not (stream is None or isinstance(stream, torch.Stream)):
        raise RuntimeError(
            "expected stream to be a torch.Stream or torch.xpu.Stream object, but got "
            f"{type(stream).__name__}"
        )
    return stream


def stream_of(stream_id: int, device_index: int, device_type: int) -> torch.Stream:
    """A ``torch.xpu.Stream`` object for an existing stream."""
    stand_in: Any = torch.xpu.Stream
    made: torch.Stream = stand_in(
        stream_id=stream_id, device_index=device_index, device_type=device_type
    )
    return made
