"""Conversions between the CPU and xpu that copy at the first write, if ever."""

from collections.abc import Iterator
from contextlib import contextmanager

from xpurt import _C, config
from xpurt.arguments import check_flag
from xpurt.sharing import raw_pointer_guards


@contextmanager
def lazy_copies(enabled: bool = True) -> Iterator[None]:
    """Inside, ``.to("xpu")`` and ``.cpu()`` of this thread are copy-on-write: they take
    no time and no memory, and either side is copied before its first write.
    ``XPURT_LAZY_COPIES=1`` does so for the whole process; ``lazy_copies(False)`` then
    switches it off for a block. Copies that were made lazily stay so after the block.

    Values are always those of a plain copy. A conversion is lazy if all of these
    conditions hold, and a plain copy otherwise:

    - the ordinal is one CPU device, whose memory host and device share; under AUTO
      with a GPU every conversion is a plain copy;
    - neither dtype nor layout changes, and the tensor is dense (with its dimensions in
      any order, without a conjugate or negative bit, not empty) and covers its storage:
      a slice is copied;
    - no other tensor uses its storage: a tensor with views is copied. A view is copied,
      too, since autograd keeps its base, unless it was made under ``no_grad``;
    - the storage can be resized, which ends with ``numpy()`` and ``share()``. It has an
      allocator, which a storage of ``torch.load`` lacks. Its memory is PyTorch's own:
      not pinned, not shared between processes, not mapped from a file, not numpy's;
    - no pointer to it was taken by ``data_ptr()``, DLPack or
      ``__sycl_usm_array_interface__`` before, and it is not in use by an XPU graph.
      ``__sycl_usm_array_interface__`` before, and it is not in use by an XPU graph.

    The first op that writes, whatever its schema declares, makes the copy, on the side
    that writes. So does a request for a pointer: ``data_ptr()``, ``numpy()``, DLPack,
    ``share()``, or a kernel of a C++ extension, unless it requests a const pointer. A
    side that remains alone, with memory of its own kind, writes there without a copy.
    Memory of the CPU is written to, or freed, only after the queued work that reads it;
    the host waits for that work.

    Until then the memory belongs to the side that was converted, and is counted there.
    A lazy xpu tensor adds nothing to ``torch.xpu.memory_allocated()``. A lazy CPU
    tensor holds a block of xpu, and with it the mapping. ``op_report()`` counts a lazy
    conversion as ``aten::_to_copy``, and ``aten::copy_`` when the copy is made.

    Two kinds of pointers can't be detected: those that C++ code keeps, and those taken
    by ``data_ptr()`` or DLPack before this was first switched on. A write through one
    of them after the conversion changes the other side, too. Capturing work on a lazy
    copy is refused.
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
    """Applies ``XPURT_LAZY_COPIES``. Never raises."""
    if config.lazy_copies_at_import():
        raw_pointer_guards.follow_lazy_copies()
        _C.set_lazy_copies_of_process(True)
