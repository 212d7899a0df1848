"""Runs the suite `auto`: a process per mapping, of one core per device, alternating.

On a machine without a GPU the virtual GPU is the second device. With
``DPCPP_CPU_NUM_CUS=1`` the CPU device and the virtual GPU have a core each, and with
``OMP_NUM_THREADS=1`` PyTorch's own kernels have one, too.
"""

import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import xpurt
from xpurt.bench.auto.cases import CASES, CHAIN, GROUP_LIMITS, AutoCase
from xpurt.config import config
from xpurt.text.table import table

AUTO = "auto"  # the suite's name
AUTO_MAPPING = "AUTO"  # the mapping of all devices

# Until all kernels are built, and ten times of each op are known.
WARM_S, WARM_CALLS = 4.0, 12
ROUNDS, QUICK_ROUNDS = 9, 3
ONE_CORE = {
    "DPCPP_CPU_NUM_CUS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XPURT_LEARN": "1",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """Median seconds per call, by mapping. cores: kept busy under the CPU mapping."""

    case: AutoCase
    seconds: dict[str, float]
    cores: float

    @property
    def ratio(self) -> float:
        """AUTO's time divided by the time that its limit compares with."""
        return self.seconds[self.case.auto] / self.case.limit.time(self.seconds)

    @property
    def is_met(self) -> bool:
        return self.ratio <= self.case.limit.most


class Worker:
    """A process that runs `xpurt.bench.auto.worker`, seen from its parent."""

    def __init__(self, mapping: str, delay_us: int = 0) -> None:
        variables = {
            **os.environ,
            **ONE_CORE,
            "XPURT_MAPPING": mapping,
            "XPURT_VIRTUAL_GPU_DELAY_US": str(delay_us),
        }
        if config().virtual_gpu == "off" and not _has_gpu():
            variables["XPURT_VIRTUAL_GPU"] = "strict"
        self.process = subprocess.Popen(
            # A single device gets a single core, also from libraries that count cores.
            [sys.executable, "-m", "xpurt.bench.auto.worker"]
            + (["--one-core"] if mapping != AUTO_MAPPING else []),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=variables,
        )
        self._answer()

    def seconds(self, case: AutoCase, calls: int) -> float:
        """The time of this many calls. Raises RuntimeError if the process ended."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{case.name}\t{calls}\n")
        self.process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process of the suite ended: {self.process.wait()}")
        return line

    def cpu_s(self) -> float:
        """The processor time of the process so far, in seconds."""
        told = Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = told.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)


def _has_gpu() -> bool:
    return any(device.kind == "gpu" for device in xpurt.physical_devices())


@contextmanager
def _workers(mappings: Sequence[str], delay_us: int = 0) -> Iterator[dict[str, Worker]]:
    with ExitStack() as stack:
        made = {}
        for mapping in mappings:
            made[mapping] = Worker(mapping, delay_us)
            stack.callback(made[mapping].close)
        yield made


def run_auto(*, quick: bool = False, rows: str = "*") -> int:
    """Prints the table. Returns 0, even if a limit is not met."""
    chosen = [case for case in CASES if fnmatchcase(case.name, rows)]
    print(
        "AUTO against each device alone: one core per device, a process per mapping, in "
        "turns"
    )
    found = []
    for case in chosen:
        print(case.name, file=sys.stderr, flush=True)
        found.append(_measure(case, QUICK_ROUNDS if quick else ROUNDS))
    print(_table(found))
    for line in _groups(found):
        print(line)
    return 0


def _measure(case: AutoCase, rounds: int) -> Measured:
    mappings = list(dict.fromkeys((*case.limit.against, case.auto)))
    delay_us = _delay_us(case) if case.slow_gpu > 1 else 0
    with _workers(mappings, delay_us) as workers:
        for worker in workers.values():
            began, calls = time.monotonic(), 0
            while time.monotonic() - began < WARM_S or calls < WARM_CALLS:
                worker.seconds(case, case.calls)
                calls += case.calls
        seen: dict[str, list[float]] = {mapping: [] for mapping in mappings}
        cpu_s = wall_s = 0.0
        for _ in range(rounds):
            for mapping, worker in workers.items():
                before, began = worker.cpu_s(), time.monotonic()
                seen[mapping].append(worker.seconds(case, case.calls) / case.calls)
                if mapping == "CPU":
                    cpu_s += worker.cpu_s() - before
                    wall_s += time.monotonic() - began
    medians = {mapping: statistics.median(times) for mapping, times in seen.items()}
    return Measured(case, medians, cpu_s / wall_s if wall_s else math.nan)


def _delay_us(case: AutoCase) -> int:
    """The delay that makes the GPU `slow_gpu` times slower in a kernel of the case."""
    with _workers(["GPU"]) as workers:
        (gpu,) = workers.values()
        gpu.seconds(case, case.calls)
        seconds = min(gpu.seconds(case, case.calls) for _ in range(3)) / case.calls
    return round(seconds / (2 * CHAIN) * (case.slow_gpu - 1) * 1e6)


def _table(found: Sequence[Measured]) -> str:
    def ms(each: Measured, mapping: str) -> str:
        seconds = each.seconds.get(mapping)
        return f"{seconds * 1e3:.3f}" if seconds is not None else ""

    cells = (
        (
            each.case.name,
            ms(each, "CPU"),
            ms(each, "GPU"),
            ms(each, each.case.auto),
            f"{each.ratio:.3f}",
            f"{each.case.limit.most:.3f}",
            "yes" if each.is_met else "no",
            f"{each.cores:.2f}",
        )
        for each in found
    )
    headings = (
        "case",
        ">CPU ms",
        ">GPU ms",
        ">AUTO ms",
        ">ratio",
        ">at most",
        "met",
        ">cores of CPU",
    )
    return table(headings, cells)


def _groups(found: Sequence[Measured]) -> Iterator[str]:
    for group, most in GROUP_LIMITS.items():
        ratios = [each.ratio for each in found if each.case.group == group]
        if not ratios:
            continue
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
        met = "met" if mean <= most else "not met"
        yield f"{group}: {mean:.3f} over the best, geometric mean; at most {most}: {met}"
