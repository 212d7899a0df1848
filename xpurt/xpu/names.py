"""The names in ``torch._C`` that the Python layer of ``torch.xpu`` uses."""

from collections.abc import Callable
from typing import Any

from xpurt import _C, streams
from xpurt.xpu import memory, pools, scatter_gather
from xpurt.xpu.properties import DeviceProperties


def names(initialize: Callable[[], None]) -> dict[str, Any]:
    """Each name with its implementation.

    initialize: implements ``_xpu_init``.
    """
    return {
        "_has_xpu": True,
        "_XpuDeviceProperties": DeviceProperties,
        "_XpuStreamBase": streams.Stream,
        "_XpuEventBase": streams.Event,
        "_XPUGraph": _C.Graph,
        "_XPUMemPool": pools.MemPool,
        "_xpu_XPUAllocator": pools.Allocator,
        "_xpu_init": initialize,
        "_xpu_isInBadFork": _C.in_bad_fork,
        "_xpu_getArchFlags": _no_arch_flags,
        # devices
        "_xpu_getDeviceCount": _C.device_count,
        "_xpu_getDevice": _C.current_device,
        "_xpu_setDevice": _C.set_device,
        "_xpu_exchangeDevice": _C.exchange_device,
        "_xpu_maybeExchangeDevice": _C.maybe_exchange_device,
        "_xpu_canDeviceAccessPeer": _C.can_access_peer,
        "_xpu_synchronize": _C.synchronize_device,
        # streams
        "_xpu_setStream": _C.set_stream,
        "_xpu_getCurrentStream": _C.current_stream,
        "_xpu_getCurrentRawStream": _C.current_queue,
        "_xpu_getStreamFromExternal": _C.external_stream,
        "_xpu_sleep": _C.sleep,
        "_xpu_isCurrentStreamCapturing": _C.is_current_stream_capturing,
        "_xpu_graph_pool_handle": _C.graph_pool_handle,
        # memory
        "_xpu_emptyCache": _C.empty_cache,
        "_xpu_memoryStats": memory.memory_stats,
        "_xpu_resetPeakMemoryStats": _C.reset_peak_memory_stats,
        "_xpu_resetAccumulatedMemoryStats": _C.reset_accumulated_memory_stats,
        "_xpu_getMemoryInfo": _C.memory_info,
        "_xpu_getMemoryFraction": _memory_fraction,
        "_xpu_setMemoryFraction": memory.set_memory_fraction,
        "_xpu_memorySnapshot": memory.memory_snapshot,
        "_xpu_recordMemoryHistory": _C.record_memory_history,
        "_xpu_customAllocator": pools.custom_allocator,
        "_xpu_changeCurrentAllocator": pools.change_current_allocator,
        "_xpu_getAllocator": pools.current_allocator,
        "_xpu_beginAllocateToPool": pools.begin_of_all_threads,
        "_xpu_beginAllocateCurrentThreadToPool": pools.begin_of_this_thread,
        "_xpu_endAllocateToPool": _C.end_allocate_to_pool,
        "_xpu_releasePool": _C.release_pool,
        **scatter_gather.names(),
    }


def _no_arch_flags() -> None:
    """None: kernels are built for the present device, never ahead of time."""


def _memory_fraction(device: int) -> float:
    return _C.memory_fraction(device)
