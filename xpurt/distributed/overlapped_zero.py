"""Refuses the hooks that overlap DDP with ZeroRedundancyOptimizer.

The callback of one bucket broadcasts parameters and waits. Gloo runs callbacks in
threads of its own, in an order that differs between ranks, and then they wait for each
other. PyTorch refuses these hooks for gloo for that reason (pytorch/pytorch#62300), and
knows a backend by its name alone. xccl and the backend of
prototype devices are around gloo here.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch


def change(hooks: ModuleType) -> None:
    """Changes ``torch.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook``."""
    names = vars(hooks)
    for name in ("hook_with_zero_step", "hook_with_zero_step_interleaved"):
        names[name] = _refusing(names[name])


def _refusing(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def made(hook: Any, ddp: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_around_gloo(ddp):
            raise RuntimeError(
                f"{before.__name__} may hang with the backend of {ddp.device_type}, which is around "
                "gloo. Use ZeroRedundancyOptimizer without overlap_with_ddp, and call "
                "its step() after backward()."
            )
        return before(hook, ddp, *args, **kwargs)

    return made


def _is_around_gloo(ddp: Any) -> bool:
    if ddp.device_type == "xpu":
        return True
    backend = ddp.process_group._get_backend(torch.device(ddp.device_type))
    return bool(backend.name() == "prototype")
