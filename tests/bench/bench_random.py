"""What random ops cost on xpu, as kernels and as host forms, beside PyTorch's CPU ops.

All in the same run, alternating; best of several rounds. Run it from the root:
python tests/bench/bench_random.py
"""

import time
from collections.abc import Callable

import torch

import xpurt

OPS: dict[str, Callable[[torch.Tensor], object]] = {
    "uniform_": lambda t: t.uniform_(),
    "normal_": lambda t: t.normal_(),
    "exponential_": lambda t: t.exponential_(),
    "bernoulli_": lambda t: t.bernoulli_(0.3),
    "random_(1000)": lambda t: t.random_(1000),
    "dropout": lambda t: torch.nn.functional.dropout(t, 0.1),
    "randperm": lambda t: torch.randperm(len(t), device=t.device),
}


def seconds(op: Callable[[torch.Tensor], object], tensor: torch.Tensor) -> float:
    start = time.perf_counter()
    op(tensor)
    torch.xpu.synchronize()
    return time.perf_counter() - start


def main() -> None:
    xpurt.set_xpu_mapping("CPU")
    print(
        f"{'op':>14} {'elements':>10} {'cpu us':>10} {'sycl/cpu':>9} {'native/cpu':>10}"
    )
    for size in (16, 1024, 1 << 14, 1 << 16, 1 << 20, 1 << 24):
        on_cpu = torch.zeros(size)
        on_xpu = on_cpu.to("xpu")
        for name, op in OPS.items():
            best = dict.fromkeys(("cpu", "sycl", "native"), float("inf"))
            for _ in range(60 if size <= 1 << 16 else 5):
                best["cpu"] = min(best["cpu"], seconds(op, on_cpu))
                for policy in ("sycl", "native"):
                    with xpurt.kernel_policy(policy):
                        best[policy] = min(best[policy], seconds(op, on_xpu))
            cpu = best["cpu"]
            print(
                f"{name:>14} {size:>10} {cpu * 1e6:>10.1f} {best['sycl'] / cpu:>9.2f}"
                f" {best['native'] / cpu:>10.2f}"
            )


if __name__ == "__main__":
    main()
