"""What several cores gain in work that reads and writes memory."""

import os
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

ELEMENTS = 16 << 20  # of an array: 64 MB, more than caches hold
ROUNDS = 5
PASSES = 4  # of a measurement


def memory_gain(elements: int = ELEMENTS) -> float:
    """The rate of all cores together, divided by that of one core, in `c = a + b` on
    large arrays: the addition of STREAM (McCalpin, 1995). Each core has arrays of its
    own.

    Devices that share the memory of the host gain no more than this from each other in
    ops that do little else.
    """
    cores = sorted(os.sched_getaffinity(0))
    arrays = [[np.ones(elements, np.float32) for _ in range(3)] for _ in cores]
    with ThreadPoolExecutor(len(cores)) as pool:

        def seconds(count: int) -> float:
            """Of the slowest of this many cores at once."""
            return max(pool.map(_seconds, cores[:count], arrays[:count]))

        gains = [len(cores) * seconds(1) / seconds(len(cores)) for _ in range(ROUNDS)]
    return statistics.median(gains)


def _seconds(core: int, arrays: Sequence[NDArray[np.float32]]) -> float:
    os.sched_setaffinity(0, [core])  # of this thread
    a, b, c = arrays
    began = time.perf_counter()
    for _ in range(PASSES):
        np.add(a, b, out=c)
    return time.perf_counter() - began
