"""AUTO against each device alone, while the load of other programs comes and goes.

A training step runs under each mapping in turns, one thread per device. Meanwhile busy
processes start and end at random times. Prints a line for each minute: AUTO's median time
divided by that of the best device alone in the same minute. The mappings of one device have
two processes each. The second column of ratios, second process over first, says what the
load, and the memory that a process happens to get, make of equal programs. Run it from the
root:
python tests/bench/bench_load.py [MINUTES [CASE]]
"""

import math
import random
import statistics
import subprocess
import sys
import threading
import time

from xpurt_tools.bench.auto.case import ALONE
from xpurt_tools.bench.auto.cases import CASES
from xpurt_tools.bench.auto.mapping_process import AUTO_MAPPING, mapping_processes
from xpurt_tools.bench.auto.run import calls_of_measurement

MINUTE_S = 60.0
WARM_S = 4.0
LEAST_S, MOST_S = 3.0, 30.0  # of a load, and of the time until the next one
MOST_PROCESSES = 2
# It ends with the process that started it, however that ends.
UNTIL_ALONE = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"
BUSY = [sys.executable, "-c", UNTIL_ALONE]
LIMIT = 1.05
SECOND = ", second"


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
    ratios, controls = [], []
    with mapping_processes(mappings) as firsts, mapping_processes(ALONE) as seconds:
        processes = firsts | {name + SECOND: each for name, each in seconds.items()}
        fastest = math.inf
        for process in processes.values():
            began = time.monotonic()
            while time.monotonic() - began < WARM_S:
                fastest = min(fastest, process.seconds(case, case.calls) / case.calls)
        calls = calls_of_measurement(case, fastest)
        load = Load()
        try:
            for minute in range(minutes):
                began = time.monotonic()
                times: dict[str, list[float]] = {each: [] for each in processes}
                while time.monotonic() - began < MINUTE_S:
                    for turn, process in processes.items():
                        times[turn].append(process.seconds(case, calls) / calls)
                medians = {turn: statistics.median(times[turn]) for turn in processes}
                best = min(ALONE, key=medians.__getitem__)
                ratios.append(medians[AUTO_MAPPING] / medians[best])
                controls.append(medians[best + SECOND] / medians[best])
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
        ("best alone / its second process", controls),
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
