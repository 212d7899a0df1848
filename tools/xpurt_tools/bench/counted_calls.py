"""The calls of a suite's rows, between marks for valgrind's callgrind. Runs in a process of
its own: see instructions.py.

    python -m xpurt_tools.bench.counted_calls LIBRARY MAPPING SUITE PATTERN CALLS
"""

import ctypes
import gc
import sys
from fnmatch import fnmatchcase
from typing import Final

import torch

import xpurt
from xpurt_tools.bench.row import Unavailable
from xpurt_tools.bench.suites import SUITES

LEARNING: Final = 300  # calls before those that are counted


def main(library: str, mapping: str, suite: str, pattern: str, calls: str) -> None:
    torch.set_num_threads(1)
    xpurt.set_xpu_mapping(mapping)
    marks = ctypes.CDLL(library)
    (chosen,) = (each for each in SUITES if each.name == suite)
    for row in chosen.rows:
        if not fnmatchcase(row.name, pattern):
            continue
        for kind in ("cpu", "xpu"):
            try:
                call = row.prepare(torch.device(kind)).call
            except Unavailable as reason:
                print(f"{row.name}: {reason}", file=sys.stderr)
                continue
            for _ in range(LEARNING):
                call()
            gc.collect()
            gc.disable()
            marks.begin()
            for _ in range(int(calls)):
                call()
            marks.end(f"{kind} {row.name}".encode())
            gc.enable()


if __name__ == "__main__":
    main(*sys.argv[1:])
