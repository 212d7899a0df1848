"""What one allocation and its free cost on xpu, beside c10's CPU allocator.

Both in the same run, alternating; the thread's own time, best of several rounds.
Then what random traces reserve at their peak over what they hold, and what the first
touch of fresh memory costs. Run it from the root: python tests/bench/bench_allocator.py
"""

import random
import time

import numpy as np
import torch

import xpurt
from xpurt import _C

MIB = 1 << 20


def speed() -> None:
    print(f"{'bytes':>10} {'cpu ns':>10} {'xpu ns':>10} {'xpu/cpu':>8}")
    for size in (8, 512, 4096, 65536, 512 << 10, 4 * MIB, 64 * MIB):
        best = {"cpu": float("inf"), "xpu": float("inf")}
        for _ in range(15):
            for device in best:
                rounds = 2000 if size > MIB and device == "cpu" else 20_000
                spent = _C.testing.time_allocations(device, size, rounds)
                best[device] = min(best[device], spent)
        cpu, xpu = best["cpu"], best["xpu"]
        print(f"{size:>10} {cpu:>10.1f} {xpu:>10.1f} {xpu / cpu:>8.3f}")


def fragmentation(
    sizes: list[int], seed: int, steps: int = 4000, held: int = 120
) -> float:
    """Peak of reserved over peak of live rounded bytes of a random trace."""
    choose = random.Random(seed)
    torch._C._accelerator_emptyCache()
    torch._C._accelerator_resetPeakStats(0)
    live: list[int] = []
    for _ in range(steps):
        if len(live) >= held or (live and choose.random() < 0.4):
            _C.testing.raw_free(live.pop(choose.randrange(len(live))))
        else:
            size = choose.choice(sizes) + choose.randrange(4096)
            live.append(_C.testing.raw_allocate(size))
    stats = torch._C._accelerator_getDeviceStats(0)
    for address in live:
        _C.testing.raw_free(address)
    reserved = stats["reserved_bytes"]["all"]["peak"]
    return float(reserved / stats["allocated_bytes"]["all"]["peak"])


def first_touch(size: int) -> tuple[float, float]:
    """Milliseconds to fill fresh memory, and the same memory again."""
    torch._C._accelerator_emptyCache()
    spent = []
    for _ in range(2):
        address = _C.testing.raw_allocate(size)
        view = np.ctypeslib.as_array(
            (np.ctypeslib.ctypes.c_uint8 * size).from_address(address)
        )
        start = time.perf_counter()
        view.fill(1)
        spent.append(1e3 * (time.perf_counter() - start))
        _C.testing.raw_free(address)
    return spent[0], spent[1]


def main() -> None:
    torch.xpu._lazy_init = lambda: None
    with xpurt.xpu_mapping("CPU"):
        speed()
        print()
        traces = {
            "small": [512, 4096, 20_000, 300_000],
            "large": [2 * MIB, 5 * MIB, 9 * MIB, 17 * MIB],
            "mixed": [4096, 300_000, 2 * MIB, 9 * MIB, 30 * MIB],
        }
        for name, sizes in traces.items():
            ratios = [fragmentation(sizes, seed) for seed in range(5)]
            print(
                f"{name:>6} trace: reserved at the peak is {max(ratios):.3f} of what is "
                f"held (best {min(ratios):.3f})"
            )
        print()
        for size in (20 * MIB, 256 * MIB):
            fresh, again = first_touch(size)
            print(
                f"filling {size >> 20} MiB: fresh {fresh:.1f} ms, again {again:.1f} ms"
            )
        torch._C._accelerator_emptyCache()


if __name__ == "__main__":
    main()
