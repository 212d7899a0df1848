"""Whether the CPU allocator gives memory back to the system between two calls.

glibc takes a block of 32 MB or more from the system by mmap and gives it back when it is
freed, so each call of an op that returns such a tensor touches every page of it for the
first time: the system has to find the page and to clear it, which can take longer than
the op. xpu keeps what it frees. To tell arithmetic from allocation, a second comparison
has malloc keep it too: with M_MMAP_MAX 0 every block comes from the heap, and without
M_TRIM_THRESHOLD the heap does not shrink, so that a block that was freed is handed out
again with its pages in place.

There is no way back to malloc as it was: large blocks that were freed stay in the heap,
and are handed out from there. So what is measured as a user has it comes first.
"""

import ctypes
import resource
from functools import cache

# Numbers from malloc.h.
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
M_MMAP_MAX = -4

DEFAULT_MMAP_MAX = 65_536
# Where glibc's thresholds end up by themselves in a process that frees large blocks.
GROWN_MMAP_THRESHOLD = 32 << 20
GROWN_TRIM_THRESHOLD = 2 * GROWN_MMAP_THRESHOLD
NEVER = -1  # as a size, more than there is


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
    """From now on malloc keeps all that is freed. False: it can't be told to."""
    library = _glibc()
    if library is None:
        return False
    library.mallopt(M_MMAP_MAX, 0)
    library.mallopt(M_TRIM_THRESHOLD, NEVER)
    return True


def let_in() -> None:
    """Memory goes back to the system again, for what else the process may do."""
    library = _glibc()
    if library is None:
        return
    library.mallopt(M_MMAP_MAX, DEFAULT_MMAP_MAX)
    library.mallopt(M_MMAP_THRESHOLD, GROWN_MMAP_THRESHOLD)
    library.mallopt(M_TRIM_THRESHOLD, GROWN_TRIM_THRESHOLD)
    library.malloc_trim(0)


def faults_so_far() -> int:
    """Page faults of this process that needed no disk."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
