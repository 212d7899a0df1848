"""How long a call takes, as far as other programs do not lengthen it.

Note [Processor time of a call]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Other programs lengthen the wall time of a call. They hardly change its processor time:
that of the calling thread and of its workers, which are all threads of the process but
the other ones of Python. On an idle machine some thread of a call on the CPU runs at any
moment, so its processor time is no shorter than its wall time. Both are upper bounds of
the time that the call would take on an idle machine, and the shorter one is the better.
It is processor time if one thread computes, or if the machine is busy, and wall time if
several threads compute at the same time.

A call that computes on another device waits for it in idle threads. There it is wall
time.
"""

import sys
import threading
import time
from collections.abc import Callable

import torch

from xpurt.mapping import current_placement

# Called before a call: begins to measure. What it returns is called after it, and
# returns microseconds.
Clock = Callable[[], Callable[[], float]]


def clock_for(index: int) -> Clock:
    """The clock for calls that compute on xpu:index or on the host."""
    device = torch.xpu.get_device_properties(index)
    alone = len(current_placement().ordinals[index]) == 1
    return processor_clock if alone and device.type == "cpu" else wall_clock


def wall_clock() -> Callable[[], float]:
    begin = time.perf_counter_ns()
    return lambda: (time.perf_counter_ns() - begin) / 1e3


def processor_clock() -> Callable[[], float]:
    """The shorter one of wall time and processor time."""
    wall_us = wall_clock()
    others = _others_ns()
    begin = time.process_time_ns()

    def elapsed_us() -> float:
        took = time.process_time_ns() - begin
        now = _others_ns()
        # A thread that began or ended meanwhile is not known, so the time is too long.
        took -= sum(now[each] - others[each] for each in now.keys() & others.keys())
        return min(max(took, 0) / 1e3, wall_us())

    return elapsed_us


def _others_ns() -> dict[int, int]:
    """The processor time of each of Python's threads but the calling one, by its id."""
    ids = {each.native_id for each in threading.enumerate()}
    ids -= {None, threading.get_native_id()}
    return {each: _thread_ns(each) for each in ids if each is not None}


def _thread_ns(native_id: int) -> int:
    """0 if the thread has ended, or if the system has no clock for it."""
    # Linux makes the clock of a thread from its id: see clock_getcpuclockid(3), and
    # MAKE_THREAD_CPUCLOCK in the kernel's linux/posix-timers.h.
    if sys.platform != "linux":
        return 0
    try:
        return time.clock_gettime_ns((~native_id << 3) | 6)
    except OSError:
        return 0
