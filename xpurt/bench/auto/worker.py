"""A process that times cases under one mapping, as its parent requests.

It reads lines `<case> <calls>`. For each it writes the seconds of the calls: of wall time,
and of processor time. A case stays prepared until another one is requested.
"""

import gc
import os
import sys
import time

import torch

import xpurt
from xpurt.bench.auto.cases import CASES
from xpurt.bench.row import Call


def serve() -> None:
    by_name = {case.name: case for case in CASES}
    name, call = "", None
    if "--one-core" in sys.argv:
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    # Only answers go to stdout; what the libraries print goes to stderr.
    answers, sys.stdout = sys.stdout, sys.stderr
    torch.zeros(1, device="xpu")
    print(xpurt.get_xpu_mapping(), file=answers, flush=True)
    for line in sys.stdin:
        wanted, _, calls = line.rstrip("\n").rpartition("\t")
        if wanted != name:
            call = None
            gc.collect()
            name, call = wanted, by_name[wanted].prepare()
        assert call is not None
        print(*_seconds(call, int(calls)), file=answers, flush=True)


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
