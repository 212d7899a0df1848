"""AUTO against each device alone, while the load of other programs comes and goes.

A training step runs under each mapping in turns, one thread per device. Meanwhile busy
processes start and end at random times. Prints a line for each minute: the median of
AUTO's time divided by that of the best device alone in the same minute. Run it from the
root: python tests/bench/bench_load.py [MINUTES [CASE]]
"""

import random
import statistics
import subprocess
import sys
import threading
import time

from xpurt.bench.auto.case import ALONE
from xpurt.bench.auto.cases import CASES
from xpurt.bench.auto.mapping_process import AUTO_MAPPING, mapping_processes

MINUTE_S = 60.0
WARM_S = 4.0
LEAST_S, MOST_S = 3.0, 30.0  # of a load, and of the time until the next one
MOST_PROCESSES = 2
BUSY = [sys.executable, "-c", "while True: pass"]
LIMIT = 1.05


class Load:
    """Up to MOST_PROCESSES busy processes, which start and end at random times."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.wait(self._random.uniform(LEAST_S, MOST_S)):
            count = self._random.randint(1, MOST_PROCESSES)
            busy = [subprocess.Popen(BUSY) for _ in range(count)]
            self._ends.wait(self._random.uniform(LEAST_S, MOST_S))
            for each in busy:
                each.kill()
                each.wait()

    def close(self) -> None:
        self._ends.set()
        self._thread.join()


def main(minutes: int, name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    mappings = (*ALONE, AUTO_MAPPING)
    print(f"{name}, {minutes} minutes of load that comes and goes; medians in ms")
    print(f"{'minute':>7} {'rounds':>7} " + " ".join(f"{m:>8}" for m in mappings))
    ratios = []
    with mapping_processes(mappings) as processes:
        for process in processes.values():
            began = time.monotonic()
            while time.monotonic() - began < WARM_S:
                process.seconds(case, case.calls)
        load = Load()
        try:
            for minute in range(minutes):
                began = time.monotonic()
                times: dict[str, list[float]] = {each: [] for each in mappings}
                while time.monotonic() - began < MINUTE_S:
                    for mapping, process in processes.items():
                        seconds = process.seconds(case, case.calls)
                        times[mapping].append(seconds / case.calls)
                medians = {m: statistics.median(times[m]) for m in mappings}
                ratios.append(medians[AUTO_MAPPING] / min(medians[m] for m in ALONE))
                print(
                    f"{minute:>7} {len(times[AUTO_MAPPING]):>7} "
                    + " ".join(f"{medians[m] * 1e3:>8.2f}" for m in mappings)
                    + f"  {ratios[-1]:.3f}",
                    flush=True,
                )
        finally:
            load.close()
    above = sum(ratio > LIMIT for ratio in ratios)
    print(
        f"AUTO / best alone: median {statistics.median(ratios):.3f}, worst "
        f"{max(ratios):.3f}, above {LIMIT} in {above} of {len(ratios)} minutes"
    )


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 3,
        sys.argv[2] if len(sys.argv) > 2 else "MLP step, batch 512",
    )
