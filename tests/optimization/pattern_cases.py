"""Models of one size for the tests of patterns, and what was done to them."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

SIZE = 16
HEADS = 4


def tokens(device: str, dtype: torch.dtype = torch.float32, count: int = 6) -> Tensor:
    made = torch.randn(2, count, SIZE, generator=torch.Generator().manual_seed(1))
    return made.to(device, dtype)


def causal(device: str, count: int = 6) -> Tensor:
    return torch.full((count, count), -math.inf, device=device).triu(1)


def model_of(kind: Callable[[], nn.Module], device: str) -> nn.Module:
    torch.manual_seed(0)
    return kind().eval().to(device)


def fused(model: Any) -> list[str]:
    return [
        what.removeprefix("fused: ")
        for _, what in model.report.done
        if what.startswith("fused")
    ]


def values(model: nn.Module, *args: Tensor) -> Tensor:
    with torch.no_grad():
        made: Tensor = model(*args)
    return made
