"""Calls of the random ops, for the tests of their numbers."""

from collections.abc import Callable

import torch

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
NARROW = {torch.float16, torch.bfloat16}

# Ops in place, by name; all take a generator.
Fill = Callable[..., torch.Tensor]
OF_FLOATS: dict[str, Fill] = {
    "uniform": lambda t, **g: t.uniform_(-2, 3, **g),
    "normal": lambda t, **g: t.normal_(1, 2, **g),
    "log_normal": lambda t, **g: t.log_normal_(0.5, 0.75, **g),
    "exponential": lambda t, **g: t.exponential_(1.5, **g),
    "cauchy": lambda t, **g: t.cauchy_(0.5, 2, **g),
}
OF_NUMBERS: dict[str, Fill] = {
    "random": lambda t, **g: t.random_(**g),
    "random to": lambda t, **g: t.random_(100, **g),
    "geometric": lambda t, **g: t.geometric_(0.125, **g),
}
OF_ALL: dict[str, Fill] = {
    "bernoulli": lambda t, **g: t.bernoulli_(0.3, **g),
    "bernoulli of tensor": lambda t, **g: t.bernoulli_(
        torch.full((), 0.3, device=t.device), **g
    ),
}
FILLS = OF_FLOATS | OF_NUMBERS | OF_ALL


def cases() -> list[tuple[str, torch.dtype]]:
    """Every op that fills a tensor, with every dtype that it takes."""
    floats = [(name, dtype) for name in FILLS for dtype in FLOATS]
    whole = [
        (name, dtype)
        for name in OF_NUMBERS | OF_ALL
        for dtype in WHOLE
        if not (name == "geometric" and dtype == torch.bool)
        and not (name == "random to" and dtype == torch.bool)
    ]
    return floats + whole


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of the elements, on the CPU."""
    found = tensor.cpu().contiguous()
    return found if found.dtype == torch.bool else found.view(torch.uint8)
