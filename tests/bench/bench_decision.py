"""What the choice of a device costs per op under AUTO, without the op itself; and what
samples by event profiling would cost.

Idle: a decision is taken from the cache. Pending: work is queued, every op is decided
anew. Run it from the root: XPURT_VIRTUAL_GPU=strict python
tests/bench/bench_decision.py
"""

import statistics
import time

import dpctl
import torch

import xpurt
from xpurt import _C

CALLS = 20_000
ROUNDS = 9


def decision_ns(operands: list[torch.Tensor]) -> float:
    return statistics.median(
        _C.testing.decision_ns("aten::add", "Tensor", operands, CALLS)
        for _ in range(ROUNDS)
    )


def choices() -> None:
    print(f"{'operands':>10} {'stream':>8} {'ns':>6}")
    for size in (1, 1 << 14, 1 << 20):
        x = torch.ones(size, device="xpu")
        for _ in range(300):
            x + x
        torch.xpu.synchronize()
        print(f"{size:>10} {'idle':>8} {decision_ns([x, x]):6.0f}")
        stream = torch.xpu.current_stream()
        _C._submit_sleep(stream.stream_id, stream.device_index, 3.0)
        print(f"{size:>10} {'pending':>8} {decision_ns([x, x]):6.0f}", flush=True)
        torch.xpu.synchronize()


def submissions() -> None:
    """Microseconds of a barrier in an in-order queue, with and without profiling."""
    ordinary = dpctl.SyclQueue("opencl:cpu", property="in_order")
    profiling = dpctl.SyclQueue("opencl:cpu", property=["in_order", "enable_profiling"])
    print(f"{'queue':>10} {'us':>6}")
    took: dict[str, list[float]] = {"ordinary": [], "profiling": []}
    for _ in range(ROUNDS):
        for name, queue in (("ordinary", ordinary), ("profiling", profiling)):
            began = time.perf_counter()
            for _ in range(2000):
                queue.submit_barrier()
            took[name].append((time.perf_counter() - began) / 2000 * 1e6)
            queue.wait()
    for name, times in took.items():
        print(f"{name:>10} {statistics.median(times):6.2f}")


if __name__ == "__main__":
    xpurt.set_xpu_mapping("AUTO")
    choices()
    submissions()
