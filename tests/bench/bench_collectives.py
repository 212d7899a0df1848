"""all_reduce on xpu against gloo on CPU tensors: two ranks, alternated, the least of all.

    torchrun --nproc-per-node 2 tests/bench/bench_collectives.py

XPURT_MAPPING and XPURT_VIRTUAL_GPU choose the device, as always.
"""

import time

import torch
import torch.distributed as dist

SIZES = {"1 KB": 1 << 10, "1 MB": 1 << 20, "64 MB": 1 << 26}
ROUNDS = 15
SECONDS = 0.05  # of calls per round and device, about


def seconds_per_call(given: torch.Tensor, calls: int) -> float:
    dist.barrier()
    torch.xpu.synchronize()
    begin = time.perf_counter()
    for _ in range(calls):
        dist.all_reduce(given)
    torch.xpu.synchronize()
    return (time.perf_counter() - begin) / calls


def main() -> None:
    dist.init_process_group()
    name = torch.xpu.get_device_name()
    for size, size_bytes in SIZES.items():
        tensors = {
            each: torch.zeros(size_bytes // 4, device=each) for each in ("cpu", "xpu")
        }
        calls = torch.ones(())
        for given in tensors.values():
            seconds_per_call(given, 2)
        calls.fill_(max(1, SECONDS / seconds_per_call(tensors["cpu"], 2)))
        dist.broadcast(calls, 0)
        least = dict.fromkeys(tensors, float("inf"))
        for _ in range(ROUNDS):
            for device, given in tensors.items():
                took = seconds_per_call(given, int(calls))
                least[device] = min(least[device], took)
        if dist.get_rank() == 0:
            cpu, xpu = (least[each] * 1e6 for each in ("cpu", "xpu"))
            ratio = f"{xpu / cpu:.2f}"
            print(f"{name}  {size:>5}  cpu {cpu:9.0f} us  xpu {xpu:9.0f} us  {ratio}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
