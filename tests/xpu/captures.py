"""Captures for the tests of XPU graphs."""

from collections.abc import Callable

import torch


def ramp(device: torch.device, size: int = 1000) -> torch.Tensor:
    """0, 1, 2, ... in float32; of 1000 elements the sum is 499,500."""
    return torch.arange(size, dtype=torch.float32).to(device)


def captured(
    work: Callable[[], torch.Tensor], **options: object
) -> tuple[torch.xpu.XPUGraph, torch.Tensor]:
    """A graph of `work`, and the tensor that its replays write to.

    options: of `torch.xpu.graph`.
    """
    graph = torch.xpu.XPUGraph()
    with torch.xpu.graph(graph, **options):
        result = work()
    return graph, result
