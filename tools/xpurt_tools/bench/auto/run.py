"""Runs the suite `auto`: a process per mapping, one thread per device, alternating."""

import json
import math
import statistics
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase

from xpurt.reports import describe_machine
from xpurt_tools.bench.auto.case import AutoCase
from xpurt_tools.bench.auto.cases import CASES
from xpurt_tools.bench.auto.mapping_process import AUTO_MAPPING, mapping_processes
from xpurt_tools.bench.auto.measured import Measured
from xpurt_tools.bench.auto.memory_rate import memory_gain
from xpurt_tools.bench.auto.report import (
    SECTION,
    as_data,
    as_table,
    save_plot,
    sentences,
    write_page,
)
from xpurt_tools.bench.calibration_loop import CalibrationLoop
from xpurt_tools.bench.request import OVER, Request, check_files, write_files
from xpurt_tools.bench.row import BadRequest

AUTO = "auto"  # the suite's name

# Until all kernels are built, and ten times of each op are known. With several devices
# there are several times as many: of each device's kernel, and of each device's shard.
# Then the program is compared with the best device alone.
WARM_S, AUTO_WARM_S, WARM_CALLS = 4.0, 20.0, 12
QUICK_WARM_S = 1.0
ROUNDS, QUICK_ROUNDS = 9, 3

# A measurement takes at least this long on the fastest mapping. Shorter ones would all be
# in one turn of a comparison, and would begin with cold caches, since the processes of
# the other mappings ran in between.
MEASURED_S, QUICK_MEASURED_S = 0.25, 0.02


def run_auto(request: Request) -> int:
    """Prints the table and writes the files. Returns 0, even if a limit is not met.

    Raises BadRequest and MissingExtra before anything is measured.
    """
    if request.html is not None:
        raise BadRequest("--html is not for the suite auto: it has a table")
    chosen = [case for case in CASES if fnmatchcase(case.name, request.rows)]
    if not chosen:
        raise BadRequest(f"no row of the suite auto is called {request.rows!r}")
    check_files(request, SECTION.of)
    machine = describe_machine()
    print(
        "AUTO against each device alone: one thread per device, a process per mapping, in "
        "turns"
    )
    end = time.monotonic() + 60 * request.minutes
    gain = memory_gain()
    found: list[Measured] = []
    over: list[str] = []  # cases for which there was no time
    loop = CalibrationLoop()
    try:
        for case in chosen:
            if time.monotonic() > end:
                over.append(case.name)
                continue
            print(case.name, file=sys.stderr, flush=True)
            runs = [
                _measure(case, loop, request.quick)
                for _ in range(1 if request.quick else case.runs)
            ]
            found.append(median_run(runs))
    except KeyboardInterrupt:
        print("\ninterrupted")
    finally:
        loop.close()
    if not found:
        return 1
    print(as_table(found))
    for line in sentences(found, gain):
        print(line)
    for name in over:
        print(f"{name}: {OVER}")
    data = as_data(found, machine, gain, request.quick) | {"not_measured": over}
    write_files(
        [
            (request.json, lambda path: path.write_text(json.dumps(data, indent=1))),
            (request.plot, lambda path: save_plot(path, found, machine.sentence)),
            (request.markdown, lambda path: write_page(path, found, machine, gain)),
        ]
    )
    return 0


def calls_of_measurement(
    case: AutoCase, fastest: float, least_s: float = MEASURED_S
) -> int:
    """How many calls are timed at once: those of the case, for `least_s` seconds and more.
    fastest: the seconds of the fastest call so far."""
    return max(case.calls, math.ceil(least_s / fastest))


def median_run(runs: Sequence[Measured]) -> Measured:
    """The one with the median value."""
    return sorted(runs, key=lambda each: each.value)[len(runs) // 2]


def _measure(case: AutoCase, loop: CalibrationLoop, quick: bool) -> Measured:
    mappings = list(dict.fromkeys((*case.limit.against, case.auto)))
    delay_us = _delay_us(case) if case.slow_gpu > 1 else 0
    with mapping_processes(mappings, delay_us) as processes:
        fastest = math.inf  # seconds of a call
        for mapping, process in processes.items():
            began, calls = time.monotonic(), 0
            warm_s = AUTO_WARM_S if mapping == AUTO_MAPPING else WARM_S
            if quick:
                warm_s = QUICK_WARM_S
            while time.monotonic() - began < warm_s or calls < WARM_CALLS:
                fastest = min(fastest, process.seconds(case, case.calls) / case.calls)
                calls += case.calls
        least_s = QUICK_MEASURED_S if quick else MEASURED_S
        per_round = calls_of_measurement(case, fastest, least_s)
        processes[case.auto].op_report()  # what follows is without the warm-up
        rounds, loads = [], []
        for _ in range(QUICK_ROUNDS if quick else ROUNDS):
            loads.append(loop.load())
            rounds.append(
                {
                    mapping: process.seconds(case, per_round) / per_round
                    for mapping, process in processes.items()
                }
            )
        report = processes[case.auto].op_report()
    return Measured(case, tuple(rounds), statistics.median(loads), report)


def _delay_us(case: AutoCase) -> int:
    """The delay that makes the GPU `slow_gpu` times slower in a kernel of the case."""
    with mapping_processes(["GPU"]) as processes:
        gpu = processes["GPU"]
        gpu.seconds(case, case.calls)
        seconds = min(gpu.seconds(case, case.calls) for _ in range(3)) / case.calls
    return round(seconds / case.kernels * (case.slow_gpu - 1) * 1e6)
