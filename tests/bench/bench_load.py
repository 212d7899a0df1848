"""AUTO against each device alone, while the load of other programs comes and goes.

A training step runs under each mapping in turns, one thread per device. Meanwhile busy
processes start and end at random times. Prints a line for each minute: AUTO's median time
divided by that of the best device alone in the same minute. The mappings of one device take
two turns a round. The second column of ratios, second turn over first, says what the load
alone makes of equal programs. Run it from the root:
python tests/bench/bench_load.py [MINUTES [CASE]]
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
AGAIN = ", again"


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
    turns = (*mappings, *(mapping + AGAIN for mapping in ALONE))
    ratios, controls = [], []
    with mapping_processes(mappings) as processes:
        for process in processes.values():
            began = time.monotonic()
            while time.monotonic() - began < WARM_S:
                process.seconds(case, case.calls)
        load = Load()
        try:
            for minute in range(minutes):
                began = time.monotonic()
                times: dict[str, list[float]] = {each: [] for each in turns}
                while time.monotonic() - began < MINUTE_S:
                    for turn in turns:
                        process = processes[turn.removesuffix(AGAIN)]
                        seconds = process.seconds(case, case.calls)
                        times[turn].append(seconds / case.calls)
                medians = {turn: statistics.median(times[turn]) for turn in turns}
                best = min(ALONE, key=medians.__getitem__)
                ratios.append(medians[AUTO_MAPPING] / medians[best])
                controls.append(medians[best + AGAIN] / medians[best])
                print(
                    f"{minute:>7} {len(times[AUTO_MAPPING]):>7} "
                    + " ".join(f"{medians[m] * 1e3:>8.2f}" for m in mappings)
                    + f"  {ratios[-1]:.3f} {controls[-1]:.3f}",
                    flush=True,
                )
        finally:
            load.close()
    for name, values in (
        ("AUTO / best alone", ratios),
        ("best alone / itself", controls),
    ):
        above = sum(value > LIMIT for value in values)
        print(
            f"{name}: median {statistics.median(values):.3f}, worst {max(values):.3f}, "
            f"above {LIMIT} in {above} of {len(values)} minutes"
        )


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 3,
        sys.argv[2] if len(sys.argv) > 2 else "MLP step, batch 512",
    )
