"""A process that times cases under one mapping, as its parent requests.

It reads lines `<case> <calls>`. For each it writes the seconds of the calls: of wall time,
and of processor time. A case stays prepared until another one is requested. For a line
`report` it writes the text of `xpurt.op_report()` since the last one, as JSON.
"""

import gc
import json
import os
import sys
import time
from pathlib import Path

import torch

import xpurt
from xpurt_tools.bench.auto.cases import CASES
from xpurt_tools.bench.row import Call


def serve() -> None:
    by_name = {case.name: case for case in CASES}
    name, call = "", None
    # Only answers go to stdout; what the libraries print goes to stderr.
    answers, sys.stdout = sys.stdout, sys.stderr
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [min(cores)])
    torch.zeros(1, device="xpu")
    if xpurt.get_xpu_mapping() != "GPU":
        _start_onednn()
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)
    print(xpurt.get_xpu_mapping(), file=answers, flush=True)
    for line in sys.stdin:
        if line == "report\n":
            print(
                json.dumps(str(xpurt.op_report(reset=True))), file=answers, flush=True
            )
            continue
        wanted, _, calls = line.rstrip("\n").rpartition("\t")
        if wanted != name:
            call = None
            gc.collect()
            name, call = wanted, by_name[wanted].prepare()
            # Collections of what lives as long as the process would be measured, too.
            gc.freeze()
        assert call is not None
        print(*_seconds(call, int(calls)), file=answers, flush=True)


def _start_onednn() -> None:
    """Starts TBB, which runs oneDNN's primitives on the CPU device. It has as many
    threads as the process may use cores when it starts. Later the process may use all
    cores, whatever its mapping is: a single core for all threads of a process makes a
    training step 2% faster, since it keeps one cache warm."""
    ones = torch.ones(64, 64, device="xpu")
    with xpurt.kernel_policy("sycl"), xpurt.prefer("CPU"):
        torch.mm(ones, ones)
    torch.xpu.synchronize()


def _seconds(call: Call, calls: int) -> tuple[float, float]:
    """Wall time and processor time of all threads."""
    torch.xpu.synchronize()
    began, processor = time.perf_counter(), time.process_time()
    for _ in range(calls):
        kept = call()
    torch.xpu.synchronize()
    took = time.perf_counter() - began, time.process_time() - processor
    del kept
    return took


if __name__ == "__main__":
    serve()
