"""The module `torch.lazy`, which PyTorch asks for the state of a device of this type."""

import functools
from types import ModuleType
from typing import Any, Final

import torch
import torch._lazy

# Of an ordinal: lazy:1 is xpu:1, with its memory and its random generator.
_OF_XPU: Final = (
    *("current_device", "set_device", "device_count", "is_available", "device"),
    *("manual_seed", "manual_seed_all", "initial_seed", "seed", "seed_all"),
    *("mem_get_info", "memory_stats", "empty_cache", "reset_peak_memory_stats"),
    *("memory_allocated", "max_memory_allocated"),
    *("memory_reserved", "max_memory_reserved"),
)


@functools.cache
def define() -> None:
    """A second call does nothing."""
    module = ModuleType("torch.lazy", __doc__)
    for name in _OF_XPU:
        setattr(module, name, _of_xpu(name))
    members: dict[str, Any] = {
        "_initialized": True,  # checkpoints keep the state of such a device alone
        "synchronize": synchronize,
        "get_rng_state": get_rng_state,
        "set_rng_state": set_rng_state,
    }
    vars(module).update(members)
    torch._register_device_module("lazy", module)  # type: ignore[no-untyped-call]


def synchronize(device: Any = None) -> None:
    """Runs what was traced, and waits for it."""
    torch._lazy.mark_step(wait=True)
    torch.xpu.synchronize(_xpu(device))


def get_rng_state(device: Any = "lazy") -> torch.Tensor:
    """The state of the generator after the random ops that were called."""
    return torch.xpu.get_rng_state(_xpu(device))


def set_rng_state(new_state: torch.Tensor, device: Any = "lazy") -> None:
    """Random ops that were called before draw from where the generator was."""
    torch.xpu.set_rng_state(new_state, _xpu(device))


def _xpu(device: Any) -> Any:
    if device is None or isinstance(device, int):
        return device
    found = torch.device(device)
    return torch.device("xpu", found.index) if found.index is not None else "xpu"


def _of_xpu(name: str) -> Any:
    of_xpu = getattr(torch.xpu, name)
    if isinstance(of_xpu, type):  # a context of a device
        return of_xpu

    @functools.wraps(of_xpu)
    def call(*arguments: Any, **named: Any) -> Any:
        moved = [_xpu(each) if _is_device(each) else each for each in arguments]
        named = {
            key: _xpu(each) if _is_device(each) else each for key, each in named.items()
        }
        return of_xpu(*moved, **named)

    return call


def _is_device(value: Any) -> bool:
    return isinstance(value, (str, torch.device))
