"""The types of the extension's functions; their bodies are in csrc/module.cpp."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from torch import Tensor, UntypedStorage, dtype

torch_version: str

def set_placement_resolver(resolver: Callable[[], object]) -> None:
    """`resolver` is called at the first need of a device, and must install one.

    It is called with the GIL held and no lock of the extension.
    """

def install_placement(mapping: str, ordinals: Sequence[Sequence[int]]) -> None:
    """Addresses of ``sycl::device`` objects per ordinal; they are copied."""

def uninstall_placement() -> None: ...
def placement_epoch() -> int: ...
def live_memory() -> tuple[int, int]:
    """Storages that are handed out, and their bytes."""

def device_count() -> int: ...
def device_uuid(device: int) -> bytes:
    """What the driver says of the ``sycl::device`` at this address: 16 bytes or none."""

def in_bad_fork() -> bool: ...
def synchronize_all() -> None: ...
def set_active(active: bool) -> None: ...
def is_active() -> bool: ...
def is_cuda_build() -> bool: ...
def yield_cuda_to_xpu() -> None: ...
def set_guard_device_count(count: int) -> None: ...
def set_device_costs(
    index: int, costs: Sequence[tuple[float, float, float, float, float]]
) -> None:
    """Rows as `xpurt.mapping.auto.DeviceCost.row`, by position in the ordinal."""

def set_preference(kind: str) -> str:
    """Sets this thread's preferred kind of device; returns the one before."""

def share_with_xpu(tensor: Tensor, index: int) -> Tensor: ...
def share_with_cpu(tensor: Tensor) -> Tensor: ...
def around_usm(
    data: int,
    sizes: Sequence[int],
    strides: Sequence[int],
    dtype: dtype,
    index: int,
    owner: object,
) -> Tensor: ...
def ordinal_of_usm(pointer: int) -> int:
    """The ordinal that the USM pointer belongs to, or -1."""

def positions_of(tensor: Tensor) -> list[int]:
    """Positions in the tensor's ordinal of the devices with a valid copy."""

def replica_bytes(index: int, position: int) -> int: ...
def escape(tensor: Tensor) -> None:
    """Makes the home copy valid and keeps the storage there from now on."""

def escape_storage(storage: UntypedStorage) -> None: ...

def set_source_callbacks(
    source: Callable[[str, Any], tuple[str, str]],
    failure: Callable[[str, str, str, str], NoReturn],
) -> None:
    """`source` gives the name and the source of the kernel that a key names; `failure`
    raises for a device, name, source and build log. Both are kept for good.
    """

def add_rows(rows: Sequence[dict[str, object]]) -> None:
    """Rows as `xpurt.kernels.table.described` makes them; once per process."""

def build_kernel(index: int, entry: str, source: str) -> None:
    """Builds OpenCL C for the home device of xpu:index, and forgets it."""

def built_kernels() -> int:
    """How many kernels this process has built."""

def set_kernel_policy(policy: str) -> None: ...
def kernel_policy() -> str: ...
