"""A profile, and a timeline of the physical queues: two files in the current folder.

`step.png` is a picture; with the suffix .json it would be a Chrome trace. `profile.json` is
a Chrome trace of PyTorch's profiler, for chrome://tracing or Perfetto.
"""

import torch
from torch.profiler import ProfilerActivity, profile

import xpurt


def step(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.softmax(a @ b, dim=1).sum(dim=0)


def main() -> None:
    # Kernels on the device's queue; by default an op may run as PyTorch's CPU kernel.
    xpurt.set_kernel_policy("sycl")
    a, b = torch.randn(2, 512, 512, device="xpu")
    step(a, b)  # the first call builds the kernels

    with xpurt.timeline("step.png") as timeline:
        step(a, b)
    for queue in timeline.queues:
        print(f"{queue.name}, stream {queue.stream}: {timeline.busy_us(queue):,.0f} us")
    for piece in timeline.pieces:
        print(f"  {piece.start_us:8,.0f} us  {piece.name}")

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.XPU]) as profiler:
        step(a, b)
        torch.xpu.synchronize()
    profiler.export_chrome_trace("profile.json")
    columns = profiler.key_averages()
    print(columns.table(sort_by="self_device_time_total", row_limit=8))


if __name__ == "__main__":
    main()
