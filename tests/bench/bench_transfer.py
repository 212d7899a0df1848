"""What `.to("xpu")` and `.cpu()` cost, over `clone()` of a CPU tensor.

All in the same run, alternating; medians. "python" is `.to("cpu", copy=True)`, which
shows how much of it is PyTorch's own way through `to`. With lazy copies the tensor is
read on the other side and comes back. Run it from the root:
python tests/bench/bench_transfer.py [largest size in MiB]
"""

import statistics
import sys
import time
from collections.abc import Callable

import torch

import xpurt


def medians(
    functions: dict[str, Callable[[], object]], rounds: int
) -> dict[str, float]:
    """Seconds of each."""
    spent: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            spent[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in spent.items()}


def there_and_back(here: torch.Tensor) -> torch.Tensor:
    with xpurt.lazy_copies():
        there = here.to("xpu")
        there[0].item()
        return there.cpu()


def main() -> None:
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    xpu = torch.device("xpu")
    print(f"{'KiB':>8} {'clone us':>10} {'to xpu':>7} {'device':>7} {'.cpu()':>7} "
          f"{'python':>7} {'lazy':>7}")  # fmt: skip
    kib = 4
    while kib <= largest << 10:
        here = torch.randn(kib << 8)
        there = here.to(xpu)
        apart = here.clone()  # stays lazy
        found = medians(
            {
                "clone": here.clone,
                "to xpu": lambda here=here: here.to("xpu"),
                "device": lambda here=here: here.to(xpu),
                ".cpu()": there.cpu,
                "python": lambda here=here: here.to("cpu", copy=True),
                "lazy": lambda apart=apart: there_and_back(apart),
            },
            rounds=max(7, min(2000, (64 << 10) // kib)),
        )
        clone = found.pop("clone")
        ratios = " ".join(f"{seconds / clone:7.2f}" for seconds in found.values())
        print(f"{kib:8} {clone * 1e6:10.1f} {ratios}")
        kib *= 4


if __name__ == "__main__":
    with xpurt.xpu_mapping("CPU"):
        main()
