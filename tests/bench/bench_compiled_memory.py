"""Peak memory of a training step: stock PyTorch on CPU tensors, and xpu, compiled.

    python tests/bench/bench_compiled_memory.py

Each line is a process. It has a GPT of the suite `compile`, and AdamW. Prints the memory
between steps, and the largest amount above it within the fourth step: of xpu by its
allocator's statistics, of CPU tensors by the profiler's allocations. What kernels
allocate for themselves without PyTorch's allocators is in neither.
"""

import subprocess
import sys

import torch
from torch import Tensor
from torch.autograd.profiler import profile

import xpurt
from xpurt_tools.bench.models import gpt

CASES = (
    ("cpu", "eager", "auto"),
    ("cpu", "compiled", "auto"),
    ("xpu", "eager", "auto"),
    ("xpu", "compiled", "native"),
    ("xpu", "compiled", "sycl"),
)
WARM_STEPS = 3
MB = 1e6


def peak_of_cpu(step: object) -> int:
    """Bytes above those that are allocated before the call."""
    with profile(profile_memory=True) as found:
        step()  # type: ignore[operator]
    events = [
        each for each in found.kineto_results.events() if each.name() == "[memory]"
    ]
    allocated = peak = 0
    for each in sorted(events, key=lambda each: each.start_ns()):
        allocated += each.nbytes()
        peak = max(peak, allocated)
    return peak


def peak_of_xpu(step: object) -> int:
    torch.xpu.synchronize()
    before = torch.xpu.memory_allocated()
    torch.xpu.reset_peak_memory_stats()
    step()  # type: ignore[operator]
    torch.xpu.synchronize()
    return torch.xpu.max_memory_allocated() - before


def main(device: str, mode: str, policy: str) -> None:
    xpurt.set_xpu_mapping("CPU")
    xpurt.set_kernel_policy(policy)
    torch.manual_seed(7)
    case = gpt()
    case.model.to(device)
    batch = [each.to(device) for each in case.batch]
    steps = torch.optim.AdamW(case.model.parameters(), 1e-3)

    def plain(*batch: Tensor) -> Tensor:
        return case.loss(case.model, *batch)

    loss = torch.compile(plain) if mode == "compiled" else plain

    def step() -> None:
        steps.zero_grad()
        loss(*batch).backward()  # type: ignore[no-untyped-call]
        steps.step()

    for _ in range(WARM_STEPS):
        step()
    steps.zero_grad()
    kept = [*case.model.parameters(), *batch]
    kept += [
        each
        for state in steps.state.values()
        for each in state.values()
        if isinstance(each, Tensor)
    ]
    lasting = sum(each.nbytes for each in kept)
    peak = (peak_of_xpu if device == "xpu" else peak_of_cpu)(step)
    print(
        f"{device} {mode:8} {policy:6} between steps {lasting / MB:6.1f} MB, "
        f"in a step {peak / MB:6.1f} MB more",
        flush=True,
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(*sys.argv[1:])
    else:
        for each in CASES:
            subprocess.run([sys.executable, __file__, *each], check=True)
