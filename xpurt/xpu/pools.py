"""Memory pools and allocators of the user's own: not offered."""

from typing import Any, NoReturn

POOLS = (
    "memory pools are not separate in xpurt's allocator, which keeps one pool per "
    "device and stream. torch.xpu.empty_cache() gives its unused memory back."
)
ALLOCATORS = (
    "the allocator of xpu tensors cannot be replaced: queues, replicas and freed blocks "
    "are tied to it. Memory of your own becomes a tensor through DLPack."
)
HISTORY = (
    "xpurt's allocator keeps no history of allocations. torch.xpu.memory_stats() counts "
    "them."
)


class MemPool:
    """Raises NotImplementedError when made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(POOLS)

    @property
    def id(self) -> tuple[int, int]:
        raise NotImplementedError(POOLS)

    @property
    def allocator(self) -> None:
        raise NotImplementedError(POOLS)

    def use_count(self) -> int:
        raise NotImplementedError(POOLS)


class Allocator:
    """Raises NotImplementedError when made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(ALLOCATORS)


def refuse_pool(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(POOLS)


def refuse_allocator(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(ALLOCATORS)


def refuse_history(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(HISTORY)
