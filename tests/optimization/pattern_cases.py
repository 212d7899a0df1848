"""Models of one size for the tests of patterns, and what was done to them."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.testing import assert_close

import xpurt

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
    """Without layers that nothing was fused to; on some processors these are packed."""
    found = [what for _, what in model.report.done if what.startswith("fused: ")]
    names = [what.removeprefix("fused: ") for what in found]
    return [each for each in names if each != "linear layer + packed weight"]


def values(model: nn.Module, *args: Tensor) -> Tensor:
    with torch.no_grad():
        made: Tensor = model(*args)
    return made


def assert_left_as_it_is(kind: Callable[[], nn.Module], device: str) -> None:
    """No pattern is found in the model's graph, and its values are the same."""
    model, x = model_of(kind, device), tokens(device)
    made = xpurt.optimize(model)
    results = []
    for each in (made, model):
        torch.manual_seed(3)
        results.append(values(each, x))
    assert not {"attention", "RMS norm", "SwiGLU"} & set(fused(made))
    assert_close(*results, rtol=1e-5, atol=1e-5)
