"""The largest rates of this machine, measured before the rows."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

import xpurt
from xpurt_tools.bench import onednn_alone
from xpurt_tools.bench.timing import Budget, Side, interleaved

TRIAD_ELEMENTS = 16 << 20  # as in the largest pointwise rows
TRIAD_PASSES = 3  # two arrays are read, one is written
PRODUCT_SIZE = 2048


@dataclass(frozen=True, slots=True)
class Limits:
    """Rates that rows are compared with, from the fastest round; 0 if one could not be
    measured.

    triad: GB/s of ``a = b + 3 * c`` into an existing array, the larger one of PyTorch's
        CPU kernel's and the SYCL kernel's.
    onednn_f32, onednn_bf16: GFLOP/s of oneDNN's product of 2048 x 2048 matrices, called
        without PyTorch.
    stock_f32: GFLOP/s of the same product on CPU tensors.
    """

    triad: float
    triad_cpu: float
    triad_xpu: float
    onednn_f32: float
    onednn_bf16: float
    stock_f32: float


def measure_limits(budget: Budget, say: Callable[[str], None] = print) -> Limits:
    """Measures the limits; calls `say` with the reason if one can't be measured."""
    triad_cpu, triad_xpu = _triads(budget)
    rates = {}
    for dtype in (torch.float32, torch.bfloat16):
        try:
            rates[dtype] = _product_rate(
                onednn_alone.product(PRODUCT_SIZE, PRODUCT_SIZE, PRODUCT_SIZE, dtype),
                budget,
            )
        except onednn_alone.Failed as failure:
            say(f"oneDNN alone could not be measured in {dtype}: {failure}")
            rates[dtype] = 0.0
    square = torch.rand(PRODUCT_SIZE, PRODUCT_SIZE)
    into = torch.empty_like(square)
    return Limits(
        triad=max(triad_cpu, triad_xpu),
        triad_cpu=triad_cpu,
        triad_xpu=triad_xpu,
        onednn_f32=rates[torch.float32],
        onednn_bf16=rates[torch.bfloat16],
        stock_f32=_product_rate(lambda: torch.mm(square, square, out=into), budget),
    )


def _triads(budget: Budget) -> tuple[float, float]:
    """GB/s of the CPU kernel, and of the SYCL kernel."""
    sides = [
        Side("cpu", _triad("cpu")),
        Side("xpu", _triad("xpu"), torch.xpu.synchronize),
    ]
    with xpurt.kernel_policy("sycl"):  # it does not affect CPU tensors
        times = interleaved(sides, budget)
    size_bytes = TRIAD_PASSES * TRIAD_ELEMENTS * torch.float32.itemsize
    cpu, xpu = (size_bytes / min(each.seconds) / 1e9 for each in times)
    return cpu, xpu


def _triad(device: str) -> Callable[[], object]:
    b, c, a = (torch.ones(TRIAD_ELEMENTS).to(device) for _ in range(3))
    return lambda: torch.add(b, c, alpha=3, out=a)


def _product_rate(call: Callable[[], object], budget: Budget) -> float:
    (times,) = interleaved([Side("product", call)], budget)
    return 2 * PRODUCT_SIZE**3 / min(times.seconds) / 1e9
