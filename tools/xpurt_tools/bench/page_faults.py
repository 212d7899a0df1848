"""Page faults of the CPU allocator, which may return memory to the system.

glibc takes a block of 32 MB or more from the system by mmap and returns it when it is
freed. So each call of an op that returns such a tensor touches every page of it for the
first time: the system has to find the page and to clear it, which can take longer than
the op. xpu keeps freed memory. To separate arithmetic from allocation, a second
comparison makes malloc keep it, too. With M_MMAP_MAX 0 every block comes from the heap.
Without M_TRIM_THRESHOLD the heap does not shrink, so that a freed block is handed out
again with its pages in place.

malloc can't be restored completely: large blocks that were freed stay in the heap, and
are handed out from there. So the measurements as in a user's program come first.
"""

import ctypes
import resource
from functools import cache

# Numbers from malloc.h.
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
M_MMAP_MAX = -4

DEFAULT_MMAP_MAX = 65_536
# The values that glibc's thresholds reach in a process that frees large blocks.
GROWN_MMAP_THRESHOLD = 32 << 20
GROWN_TRIM_THRESHOLD = 2 * GROWN_MMAP_THRESHOLD
NEVER = -1  # as an unsigned size, larger than any


@cache
def _glibc() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(None)
        library.mallopt.argtypes = (ctypes.c_int, ctypes.c_int)
        library.malloc_trim.argtypes = (ctypes.c_size_t,)
    except AttributeError:
        return None  # another C library
    return library


def keep_out() -> bool:
    """Makes malloc keep all freed memory. Returns False if that is not possible."""
    library = _glibc()
    if library is None:
        return False
    library.mallopt(M_MMAP_MAX, 0)
    library.mallopt(M_TRIM_THRESHOLD, NEVER)
    return True


def let_in() -> None:
    """Makes malloc return memory to the system again, for the rest of the process."""
    library = _glibc()
    if library is None:
        return
    library.mallopt(M_MMAP_MAX, DEFAULT_MMAP_MAX)
    library.mallopt(M_MMAP_THRESHOLD, GROWN_MMAP_THRESHOLD)
    library.mallopt(M_TRIM_THRESHOLD, GROWN_TRIM_THRESHOLD)
    library.malloc_trim(0)


def faults_so_far() -> int:
    """Page faults of this process that needed no disk access."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
