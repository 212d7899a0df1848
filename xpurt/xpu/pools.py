"""Memory pools and allocators of the user's own, in the form of ``torch.xpu``."""

from typing import NoReturn

import torch

from xpurt import _C

PoolId = tuple[int, int]


class Allocator:
    """Where memory comes from: the driver, or functions of the user's own.

    It stands for `torch._C._xpu_XPUAllocator`, what
    `torch.xpu.memory.XPUPluggableAllocator(...).allocator()` returns.
    """

    def __init__(self, source: _C.MemorySource | None = None) -> None:
        self.source = source


class MemPool:
    """A memory pool for allocations inside of `torch.xpu.use_mem_pool` alone.

    allocator: gives the pool its segments; by default the driver does.
    is_user_created: affects the form of the id alone: (0, n) or (n, 0).
    use_on_oom: whether an allocation outside of the pool may take its free blocks
        before it fails for lack of memory.
    no_split: of PyTorch 2.15; nothing but False is possible.

    The pool is on the current device. `torch.xpu.empty_cache()` returns its memory once
    the pool and all tensors in it are gone.
    """

    def __init__(
        self,
        allocator: Allocator | None = None,
        is_user_created: bool = True,
        use_on_oom: bool = False,
        no_split: bool = False,
    ) -> None:
        if no_split:
            raise RuntimeError(
                "no_split=True was asked of a MemPool of xpu, whose segments are always "
                "split for smaller allocations. Leave it out: only the addresses of "
                "blocks differ."
            )
        if not (allocator is None or isinstance(allocator, Allocator)):
            raise TypeError(
                "the allocator of a MemPool is what XPUPluggableAllocator.allocator() "
                f"returns; found {type(allocator).__name__}"
            )
        self._allocator = allocator
        source = allocator.source if allocator is not None else None
        self._pool = _C.MemoryPool(source, is_user_created, use_on_oom)

    @property
    def id(self) -> PoolId:
        """Raises RuntimeError if the xpu mapping has been replaced."""
        return self._pool.id

    @property
    def allocator(self) -> Allocator | None:
        return self._allocator

    def use_count(self) -> int:
        """The number of holders of the pool: this object, and each open
        `use_mem_pool`."""
        return self._pool.use_count()


def begin_of_all_threads(device: int, pool: PoolId) -> None:
    """Directs allocations of every thread to the pool, until the end."""
    _C.begin_allocate_to_pool(device, pool, this_thread_only=False)


def begin_of_this_thread(device: int, pool: PoolId) -> None:
    """Directs allocations of this thread to the pool, until the end."""
    _C.begin_allocate_to_pool(device, pool, this_thread_only=True)


_of_driver = Allocator()
_current = _of_driver


def custom_allocator(allocate: int, free: int) -> Allocator:
    """The allocator that calls two C functions.

    allocate: the address of ``void* (size_t bytes, int device, sycl::queue*)``
    free: of ``void (void* pointer, size_t bytes, int device, sycl::queue*)``
    """
    return Allocator(_C.MemorySource(allocate, free))


def current_allocator() -> Allocator:
    return _current


def change_current_allocator(allocator: Allocator) -> None:
    """Takes all memory of xpu tensors from `allocator` from now on.

    It is called for each tensor. It gets the memory back when the tensor is gone and
    the work queued on its stream is done: nothing is cached.
    Raises RuntimeError if xpu is in use already.
    """
    global _current
    if allocator is _current:
        return
    if torch.xpu.is_initialized():  # type: ignore[no-untyped-call]
        _refuse_change()
    _C.set_memory_source(allocator.source)
    _current = allocator


def _refuse_change() -> NoReturn:
    raise RuntimeError(
        "the allocator cannot be changed any more: xpu is initialized, and its memory "
        "comes from the present one. Change it before the first use of xpu, or use a "
        "torch.xpu.MemPool with an allocator of its own."
    )
