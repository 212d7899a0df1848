"""Conversions between the CPU and xpu that copy when somebody writes, if ever."""

from collections.abc import Iterator
from contextlib import contextmanager

from xpurt import _C, config
from xpurt.arguments import check_flag
from xpurt.sharing import raw_pointer_guards


@contextmanager
def lazy_copies(enabled: bool = True) -> Iterator[None]:
    """Within it, ``.to("xpu")`` and ``.cpu()`` of this thread are copy-on-write: they
    take no time and no memory, and either side is copied before its first write.
    ``XPURT_LAZY_COPIES=1`` does so for the whole process, ``lazy_copies(False)`` then
    switches it off for a block. Copies that were made lazily stay so after the block.

    Values are always those of a plain copy. A conversion is lazy where all of this
    holds, and copies otherwise:

    - the ordinal is one CPU device, whose memory host and device share; under AUTO
      with a GPU everything is copied;
    - neither dtype nor layout changes, and the tensor is dense (of any order of
      dimensions, without a conjugate or negative bit, not empty) and covers its
      storage: a slice is copied;
    - no other tensor has its storage: a tensor with views is copied, and so is a view,
      whose base autograd keeps, unless it was made under ``no_grad``;
    - the storage can be resized, which ends with ``numpy()`` and ``share()``, has an
      allocator, which one of ``torch.load`` has not, and PyTorch's own memory: not
      pinned, not shared between processes, not mapped from a file, not numpy's;
    - no pointer to it was taken by ``data_ptr()``, DLPack or
      ``__sycl_usm_array_interface__`` before, and it is not in use by an XPU graph.

    The copy is made, on the side that writes, by the first op that writes, whatever its
    schema says, and by whatever asks for a pointer: ``data_ptr()``, ``numpy()``,
    DLPack, ``share()``, a kernel of a C++ extension unless it asks for a const pointer.
    The side that is left alone with memory of its own kind writes there, without a
    copy; memory of the CPU is written to, or freed, after queued work that reads it is
    over, which is waited for.

    Until then the memory is that of the side that was converted, and is counted there:
    a lazy xpu tensor takes none of ``torch.xpu.memory_allocated()``, and a lazy CPU
    tensor holds a block of xpu, and with it the mapping. ``op_report()`` counts a lazy
    conversion as ``aten::_to_copy``, and ``aten::copy_`` when the copy is made.

    Pointers that C++ code keeps, and those that were taken by ``data_ptr()`` or DLPack
    before this was first switched on, can't be seen: who writes through one after the
    conversion is seen on the other side. Capturing work on a lazy copy is refused.
    """
    check_flag("lazy_copies()", enabled)
    if enabled:
        raw_pointer_guards.follow_lazy_copies()
    before = _C.exchange_lazy_copies(int(enabled))
    try:
        yield
    finally:
        _C.exchange_lazy_copies(before)


def enable_at_import() -> None:
    """What ``XPURT_LAZY_COPIES`` asks for. Never raises."""
    if config.lazy_copies_at_import():
        raw_pointer_guards.follow_lazy_copies()
        _C.set_lazy_copies_of_process(True)
