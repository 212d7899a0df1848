"""What an op costs on xpu, beside the same op on CPU tensors.

Twelve ops on 1 and on 1,024 elements, in one process, alternating in short rounds:
the ratio of the medians, and that of the fastest rounds. Run it from the root, on a
machine that does nothing else: python tests/bench/bench_dispatch.py
"""

import math
import statistics
import time
from collections.abc import Callable

import torch

import xpurt

ROUNDS = 40
CALLS = 120

Op = Callable[[], object]


def ops(device: str, size: int) -> dict[str, Op]:
    torch.manual_seed(0)
    x = torch.rand(size).to(device)
    y = torch.rand(size).to(device)
    ones = torch.ones(size).to(device)
    side = math.isqrt(size)
    square = torch.rand(side, side).to(device)
    out = torch.empty(size).to(device)
    return {
        "add": lambda: x.add(y),
        "add scalar": lambda: x.add(1.0),
        "mul_": lambda: x.mul_(ones),
        "mul out": lambda: torch.mul(x, y, out=out),
        "exp": x.exp,
        "relu": x.relu,
        "sum": lambda: x.sum(0),
        "softmax": lambda: x.softmax(0),
        "mm": lambda: square.mm(square),
        "cat": lambda: torch.cat((x, y)),
        "zeros_like": lambda: torch.zeros_like(x),
        "copy_": lambda: out.copy_(x),
    }


def spend(op: Op) -> float:
    """Microseconds per call."""
    begin = time.perf_counter_ns()
    for _ in range(CALLS):
        op()
    return (time.perf_counter_ns() - begin) / CALLS / 1e3


def compare(size: int) -> None:
    print(f"{size} element{'s' * (size > 1)}, us")
    print(f"{'op':>12} {'cpu':>7} {'xpu':>7} {'ratio':>6} {'of best':>8}")
    medians, bests = [], []
    cpu, xpu = ops("cpu", size), ops("xpu", size)
    for name in cpu:
        spent: dict[str, list[float]] = {"cpu": [], "xpu": []}
        for _ in range(ROUNDS):
            spent["cpu"].append(spend(cpu[name]))
            spent["xpu"].append(spend(xpu[name]))
        middle = {device: statistics.median(each) for device, each in spent.items()}
        best = {device: min(each) for device, each in spent.items()}
        medians.append(middle["xpu"] / middle["cpu"])
        bests.append(best["xpu"] / best["cpu"])
        print(
            f"{name:>12} {middle['cpu']:7.2f} {middle['xpu']:7.2f} "
            f"{medians[-1]:6.2f} {bests[-1]:8.2f}"
        )
    print(
        f"{'geomean':>12} {'':15} {statistics.geometric_mean(medians):6.2f} "
        f"{statistics.geometric_mean(bests):8.2f}\n"
    )


if __name__ == "__main__":
    xpurt.set_xpu_mapping("CPU")
    torch.set_num_threads(1)
    for size in (1, 1024):
        compare(size)
