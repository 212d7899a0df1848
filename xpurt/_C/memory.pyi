"""Pools, snapshots, history, graphs and the allocator: csrc/python/bind_snapshot.cpp,
bind_graph.cpp and bind_allocator.cpp. At run time these are names of `xpurt._C`."""

from typing import Any

from torch import Generator

# Pools, snapshots, history: csrc/python/bind_snapshot.cpp

def memory_snapshot() -> list[dict[str, Any]]:
    """Every segment with its blocks, as returned by `torch.xpu.memory_snapshot`."""

def memory_snapshot_with_traces(pool: tuple[int, int]) -> dict[str, Any]:
    """The segments of one pool, or of all for (0, 0), and each device's history."""

def record_memory_history(
    enabled: str | None,
    context: str | None,
    stacks: str,
    max_entries: int,
    clear_history: bool,
    skip_actions: list[str],
) -> None:
    """See `torch.xpu.memory._record_memory_history`."""

class MemorySource:
    """Two C functions that allocate and free memory, by address. Never freed."""

    def __init__(self, allocate: int, free: int) -> None: ...

class MemoryPool:
    """A private pool of the current device."""

    def __init__(
        self, source: MemorySource | None, made_by_user: bool, use_on_oom: bool
    ) -> None: ...
    @property
    def id(self) -> tuple[int, int]: ...
    @property
    def source(self) -> MemorySource | None: ...
    def use_count(self) -> int: ...

def set_memory_caching(on: bool) -> None:
    """Off: each tensor has an allocation of its own. Before xpu has memory."""

def set_memory_source(source: MemorySource | None) -> None:
    """Takes all memory from `source`; RuntimeError if some has been allocated."""

def memory_source() -> MemorySource | None: ...
def begin_allocate_to_pool(
    device: int, pool: tuple[int, int], this_thread_only: bool
) -> None:
    """Directs allocations to segments of this pool alone, until the end."""

def end_allocate_to_pool(device: int, pool: tuple[int, int]) -> None: ...
def release_pool(device: int, pool: tuple[int, int]) -> None:
    """Undoes one `begin_allocate_to_pool`; RuntimeError if there was none."""

# XPU graphs: csrc/python/bind_graph.cpp

class Graph:
    """One capture and its replays; see `torch.xpu.XPUGraph`.

    NotImplementedError if the current device can't record commands, or the ordinal has
    several devices.
    """

    def __init__(self, keep_graph: bool = False) -> None: ...
    def capture_begin(self, pool: tuple[int, int] | None = None) -> None: ...
    def capture_end(self) -> None: ...
    def instantiate(self) -> None: ...
    def register_generator_state(self, state: Generator) -> None:
        """TypeError or RuntimeError for a generator of another device, and in a
        capture. A replay advances every generator that draws in the capture."""

    def replay(self) -> None: ...
    def reset(self) -> None: ...
    def pool(self) -> tuple[int, int]: ...
    def enable_debug_mode(self) -> None: ...
    def debug_dump(self, debug_path: str) -> None: ...
    def raw_xpu_graph(self) -> int:
        """The address of the modifiable ``command_graph``."""

    def raw_xpu_graph_exec(self) -> int:
        """The address of the executable ``command_graph``."""

def graph_pool_handle() -> tuple[int, int]: ...
def is_current_stream_capturing() -> bool: ...

# The allocator: csrc/python/bind_allocator.cpp

def memory_fraction(device: int) -> float: ...
def set_memory_fraction(device: int, fraction: float) -> None:
    """The share of the device's memory, 0 to 1, that this process may reserve.

    ValueError if it is out of range.
    """

def host_memory(root: str = "") -> tuple[int, int, int]:
    """Total and free memory for this process, and free swap, in bytes."""
