"""The types of the functions of csrc/python/prototype."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Generator, Stream, Tensor, dtype

def make_prototype_device(
    type: str, behind: str, count: int, sycl_devices: Sequence[int]
) -> None:
    """A device of a type without one. behind: "cpu" or "xpu". sycl_devices: the addresses of
    the `sycl::device` objects that have the memory, one per device; empty if it is that of
    `behind`."""

def register_derivative(op: str, type: str, function: Callable[..., object]) -> None:
    """Autograd calls `function` for the op on tensors of the type, from now on."""

def prototype_copies(type: str) -> bool:
    """Whether the CPU's kernels get copies, as the host can't read the memory."""

def prototype_queue(stream: Stream) -> object:
    """A capsule, as `xpurt.mapping.queue_from_capsule` takes it."""

def prototype_current(type: str) -> int: ...
def prototype_exchange(type: str, index: int) -> int:
    """Sets this thread's current device, and returns the one before."""

def prototypes() -> list[str]:
    """The device types that have a prototype."""

def prototype_calls(type: str) -> list[tuple[str, bool, int, int, float]]:
    """Op, whether the vendor's kernel ran, calls, bytes copied, seconds."""

def count_vendor_kernels(type: str) -> None:
    """From now on calls of kernels that the vendor has registered are counted."""

def reset_prototype_calls(type: str) -> None: ...
def prototype_generator(type: str, index: int) -> Generator: ...
def prototype_stream(type: str, index: int) -> Stream: ...
def prototype_exchange_stream(stream: Stream) -> Stream: ...
def prototype_memory_stats(type: str, index: int) -> dict[str, Any]:
    """What tensors of the device have, nested as `torch._C._accelerator_getDeviceStats`
    has it. Here and below an index of -1 is the current device."""

def reset_prototype_memory_stats(type: str, index: int, peaks: bool) -> None:
    """Of the peaks, or else of the accumulated counts."""

def prototype_memory_info(type: str, index: int) -> tuple[int, int]:
    """Free and all bytes of the device behind."""

def empty_prototype_cache(type: str) -> None: ...
def prototype_dtypes(type: str, index: int) -> set[dtype]:
    """The types that tensors on the device may have."""

def define_backend() -> Any:
    """The class of backends for prototypes, whose argument is one for xpu. Its base is in
    torch._C._distributed_c10d."""

class RenamedCode:
    """A function of tensors of a prototype that calls `function` with those of the device
    behind. See Note [Compiled host code], whose arguments these are."""

    def __init__(
        self,
        function: Callable[[list[Any]], Sequence[Any]],
        type: str,
        index: int,
        written: list[int],
        on_device: list[bool],
    ) -> None: ...
    def __call__(self, inputs: list[Any]) -> list[Any]: ...

def to_prototype(tensor: Tensor, type: str, index: int) -> Tensor:
    """The prototype's tensor over the bytes of one of the device behind, or over a copy
    where the prototype's memory is another one."""

def from_prototype(tensor: Tensor) -> Tensor:
    """The tensor of the device behind, likewise."""
