"""Whether other programs use the cores while the bench measures."""

import hashlib
import math
import os
import time
from concurrent.futures import ThreadPoolExecutor

# Above this load, ratios are not judged: a twentieth of a core is missing, or its clock
# is lower.
MOST = 1.15
TOO_BUSY = "too busy to judge"  # the verdict then
ROUNDS = 20_000  # of the hash: about 10 ms


class CalibrationLoop:
    """Work of a constant length, on all cores at once. If it takes longer than the
    fastest time seen, another program runs on a core, or the clock is lower.

    The hash releases the GIL, and reads no memory that other programs could displace.
    Each thread has a core of its own: the system may begin both on one, and move them
    apart later than the work takes.
    """

    def __init__(self) -> None:
        self.cores = sorted(os.sched_getaffinity(0))
        self._pool = ThreadPoolExecutor(len(self.cores))
        self._least = math.inf
        for _ in range(3):
            self.load()

    def load(self) -> float:
        """The time of the slowest core, divided by the least processor time so far."""
        found = list(self._pool.map(self._work, self.cores))
        self._least = min(self._least, *(processor for _, processor in found))
        return max(wall for wall, _ in found) / self._least

    def close(self) -> None:
        self._pool.shutdown()

    @staticmethod
    def _work(core: int) -> tuple[float, float]:
        """Seconds of wall time and of this thread's processor time."""
        os.sched_setaffinity(0, [core])  # of this thread
        wall, processor = time.perf_counter(), time.thread_time()
        hashlib.pbkdf2_hmac("sha256", b"xpurt", b"load", ROUNDS)
        return time.perf_counter() - wall, time.thread_time() - processor
