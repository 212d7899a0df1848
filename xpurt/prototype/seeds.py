"""`torch.manual_seed` for a prototype device."""

import functools
from typing import Any

import torch

from xpurt.prototype.runtime_module import RuntimeModule


def follow(runtime: RuntimeModule) -> None:
    """From now on `torch.manual_seed` seeds the generators of the device, too. PyTorch does
    so for PrivateUse1, and for few other types."""
    before: Any = torch.random.manual_seed

    @functools.wraps(before)
    def manual_seed(seed: int) -> torch.Generator:
        generator: torch.Generator = before(seed)
        runtime.manual_seed_all(generator.initial_seed())
        return generator

    torch.manual_seed = torch.random.manual_seed = manual_seed
