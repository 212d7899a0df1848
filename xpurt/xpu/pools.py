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
    """A pool of memory that only those get who ask for it: see `torch.xpu.use_mem_pool`.

    allocator: gives the pool its segments, by default the driver.
    is_user_created: decides about the id alone: (0, n) or (n, 0).
    use_on_oom: whether allocations outside of the pool get its free blocks before they
        fail for want of memory.

    The pool is on the current device. Its memory goes back when the pool and all
    tensors in it are gone, at the next `torch.xpu.empty_cache()`.
    """

    def __init__(
        self,
        allocator: Allocator | None = None,
        is_user_created: bool = True,
        use_on_oom: bool = False,
    ) -> None:
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
        """How many hold the pool: this object, and each `use_mem_pool` inside."""
        return self._pool.use_count()


def begin_of_all_threads(device: int, pool: PoolId) -> None:
    """Allocations of every thread go to the pool, until the end."""
    _C.begin_allocate_to_pool(device, pool, this_thread_only=False)


def begin_of_this_thread(device: int, pool: PoolId) -> None:
    """Allocations of this thread go to the pool, until the end."""
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

    It is asked for each tensor, and gets the memory back when the tensor is gone and
    the work that was queued on its stream is done: nothing is cached.

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
