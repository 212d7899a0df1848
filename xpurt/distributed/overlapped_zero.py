"""Refuses the hooks that overlap DDP with ZeroRedundancyOptimizer.

The callback of one bucket broadcasts parameters and waits. Gloo runs callbacks in
threads of its own, in an order that differs between ranks, and then they wait for each
other. PyTorch refuses these hooks for gloo for that reason (pytorch/pytorch#62300), and
knows a backend by its name alone. xccl is around gloo here.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any


def change(hooks: ModuleType) -> None:
    """Changes ``torch.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook``."""
    names = vars(hooks)
    for name in ("hook_with_zero_step", "hook_with_zero_step_interleaved"):
        names[name] = _refusing(names[name])


def _refusing(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def made(hook: Any, ddp: Any, *args: Any, **kwargs: Any) -> Any:
        if ddp.device_type == "xpu":
            raise RuntimeError(
                f"{before.__name__} may hang with the backend of xpu, which is around "
                "gloo. Use ZeroRedundancyOptimizer without overlap_with_ddp, and call "
                "its step() after backward()."
            )
        return before(hook, ddp, *args, **kwargs)

    return made
