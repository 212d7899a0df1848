"""The number of threads of oneDNN's primitives on the CPU.

Note [Threads of TBB]
~~~~~~~~~~~~~~~~~~~~~
oneDNN divides a primitive among the threads of TBB, which has one for each core that the
process may use. DPCPP_CPU_NUM_CUS limits the threads of the CPU driver alone. So with
fewer threads for the driver, oneDNN would still take all cores: against the user's
wish, and beyond a container's quota. A part that waits for its core delays the
primitive, and the threads that are done spin meanwhile. So TBB gets the limit of the
driver.

TBB has no function in C and no headers here. The two names are of its binary interface,
which stays as it is within libtbb.so.12.
"""

import ctypes

_MAX_ALLOWED_PARALLELISM = 0
_CREATE = "_ZN3tbb6detail2r16createERNS0_2d114global_controlE"
_ACTIVE_VALUE = "_ZN3tbb6detail2r127global_control_active_valueEi"


class _GlobalControl(ctypes.Structure):
    """tbb::global_control. It limits for as long as it lives."""

    _fields_ = (
        ("value", ctypes.c_size_t),
        ("reserved", ctypes.c_ssize_t),
        ("parameter", ctypes.c_int),
    )


_limits: list[_GlobalControl] = []


def limit(library: ctypes.CDLL, threads: int) -> None:
    """Gives TBB no more threads than this, one or more, until the process ends."""
    if threads >= in_use(library):
        return
    made = _GlobalControl(threads, 0, _MAX_ALLOWED_PARALLELISM)
    library[_CREATE](ctypes.byref(made))
    _limits.append(made)


def in_use(library: ctypes.CDLL) -> int:
    """The number of threads that TBB may use."""
    active_value = library[_ACTIVE_VALUE]
    active_value.restype = ctypes.c_size_t
    found: int = active_value(_MAX_ALLOWED_PARALLELISM)
    return found
