"""Whether other programs use the cores while the suite measures."""

import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor

# Above this load, ratios are not judged: a twentieth of a core is missing, or its clock
# is lower.
MOST = 1.15
ROUNDS = 20_000  # of the hash: about 10 ms


class CalibrationLoop:
    """Work of a constant length, on all cores at once. If it takes longer than the
    fastest time seen, another program runs on a core, or the clock is lower.

    The hash releases the GIL, and reads no memory that other programs could displace.
    """

    def __init__(self) -> None:
        self.cores = len(os.sched_getaffinity(0))
        self._pool = ThreadPoolExecutor(self.cores)
        self._least = min(self._work()[1] for _ in range(3))

    def load(self) -> float:
        """The time of the slowest core, divided by the least processor time so far."""
        found = list(self._pool.map(lambda _: self._work(), range(self.cores)))
        self._least = min(self._least, *(processor for _, processor in found))
        return max(wall for wall, _ in found) / self._least

    def close(self) -> None:
        self._pool.shutdown()

    @staticmethod
    def _work() -> tuple[float, float]:
        """Seconds of wall time and of this thread's processor time."""
        wall, processor = time.perf_counter(), time.thread_time()
        hashlib.pbkdf2_hmac("sha256", b"xpurt", b"load", ROUNDS)
        return time.perf_counter() - wall, time.thread_time() - processor
