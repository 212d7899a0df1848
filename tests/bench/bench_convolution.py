"""The distinct convolutions of ResNet-18 on xpu, beside the same on CPU tensors.

Forward, and forward with backward, in one process, alternating: the ratios of the
medians, and of the fastest rounds, for PyTorch's own kernel on the same bytes (native),
oneDNN on the queue (sycl) and what the policy takes by itself (auto). Run it from the
root, on a machine that does nothing else:
python tests/bench/bench_convolution.py [--batch 8] [--dtype float32]

A machine that others use too can still tell the work apart, by the CPU time of one core:
DPCPP_CPU_NUM_CUS=1 taskset -c 0 python tests/bench/bench_convolution.py --cpu-time
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

import xpurt

# Channels of input and output, size of the image and of the window, stride.
SHAPES = [
    (3, 64, 224, 7, 2),
    (64, 64, 56, 3, 1),
    (64, 128, 56, 3, 2),
    (64, 128, 56, 1, 2),
    (128, 128, 28, 3, 1),
    (128, 256, 28, 3, 2),
    (128, 256, 28, 1, 2),
    (256, 256, 14, 3, 1),
    (256, 512, 14, 3, 2),
    (256, 512, 14, 1, 2),
    (512, 512, 7, 3, 1),
]
POLICIES = ("native", "sycl", "auto")


def milliseconds(
    call: Callable[[], object], clock: Callable[[], int] = time.perf_counter_ns
) -> float:
    begin = clock()
    call()
    torch.xpu.synchronize()
    return (clock() - begin) / 1e6


def trained(x: Tensor, weight: Tensor, stride: int, padding: int) -> None:
    x.grad = weight.grad = None
    result = F.conv2d(x, weight, None, stride, padding)
    result.backward(torch.ones_like(result))


def compare(
    calls: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], int]
) -> tuple[float, list[float]]:
    """Median of the CPU in milliseconds; ratios to the CPU of medians and of the fastest
    rounds, by policy."""
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            if name == "cpu":
                spent[name].append(milliseconds(call, clock))
                continue
            with xpurt.kernel_policy(name):
                spent[name].append(milliseconds(call, clock))
    ratios = []
    for of in (statistics.median, min):
        found = {name: of(each[2:]) for name, each in spent.items()}
        ratios += [found[p] / found["cpu"] for p in POLICIES]
    return statistics.median(spent["cpu"][2:]), ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--rounds", type=int, default=22)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--cpu-time", action="store_true")
    args = parser.parse_args()
    clock = time.perf_counter_ns
    if args.cpu_time:
        clock = time.process_time_ns
        torch.set_num_threads(1)
    xpurt.set_xpu_mapping("CPU")
    dtype = getattr(torch, args.dtype)
    form = torch.channels_last if args.channels_last else torch.contiguous_format
    for training in (False, True):
        print("forward and backward" if training else "forward", "| ms, ratios")
        names = [*POLICIES, *(f"{p} best" for p in POLICIES)]
        print(f"{'':>24} {'cpu':>8} " + " ".join(f"{name:>11}" for name in names))
        ratios: list[list[float]] = []
        for inward, outward, size, window, stride in SHAPES:
            x = torch.rand(args.batch, inward, size, size).to(dtype)
            x = x.to(memory_format=form)
            weight = torch.rand(outward, inward, window, window).to(dtype)
            weight = weight.to(memory_format=form)
            calls: dict[str, Callable[[], object]] = {}
            for name in ("cpu", *POLICIES):
                device = "cpu" if name == "cpu" else "xpu"
                mine = x.to(device).requires_grad_(training and inward > 3)
                own = weight.to(device).requires_grad_(training)
                padding = window // 2
                if training:
                    calls[name] = lambda a=mine, b=own, s=stride, p=padding: trained(
                        a, b, s, p
                    )
                else:
                    calls[name] = lambda a=mine, b=own, s=stride, p=padding: F.conv2d(
                        a, b, None, s, p
                    )
            spent, found = compare(calls, args.rounds, clock)
            label = f"{inward}->{outward} {window}x{window}/{stride} @{size}"
            print(f"{label:>24} {spent:8.3f} " + " ".join(f"{r:11.2f}" for r in found))
            ratios.append(found)
        means = [statistics.geometric_mean(each) for each in zip(*ratios, strict=True)]
        print(f"{'geomean':>24} {'':8} " + " ".join(f"{m:11.2f}" for m in means), "\n")


if __name__ == "__main__":
    main()
