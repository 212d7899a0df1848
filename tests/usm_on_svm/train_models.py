"""Trains small models on xpu and on the CPU, and compares their losses.

    XPURT_VIRTUAL_GPU=svm XPURT_MAPPING=GPU python tests/usm_on_svm/train_models.py

The models are those of tests/kernels/model_zoo.py; arguments choose some of them. Each
prints a line of JSON. The exit code is 1 if losses differ.
"""

import json
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import torch

import xpurt

sys.path.insert(0, str(Path(__file__).parents[1]))
from kernels.model_zoo import CASES, losses

from xpurt import _C

TOLERANCE = 1e-4


def agree(expected: list[float], actual: list[float]) -> bool:
    pairs = zip(expected, actual, strict=True)
    return all(abs(a - e) <= TOLERANCE * abs(e) for e, a in pairs)


def train(name: str) -> bool:
    """Whether the model has the same losses on xpu and on the CPU."""
    torch.manual_seed(0)
    case = CASES[name]()
    found = {"model": name, "device": torch.xpu.get_device_name(0)}
    found["cpu"] = expected = losses(case, "cpu")
    _C.reset_op_report()
    begin = time.perf_counter()
    try:
        found["xpu"] = actual = losses(case, "xpu")
        same = agree(expected, actual)
    except RuntimeError:
        traceback.print_exc()
        same = False
    found |= {"same": same, "seconds": round(time.perf_counter() - begin, 1)}
    found["calls"] = calls = Counter()
    for row in xpurt.op_report():
        calls[row.tier] += row.calls
    print(json.dumps(found), flush=True)
    return same


def main(names: list[str]) -> int:
    """Trains all models of `names`, and returns the exit code."""
    with xpurt.kernel_policy("sycl"):
        results = [train(name) for name in names or CASES]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
