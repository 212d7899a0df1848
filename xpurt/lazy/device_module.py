"""The module `torch.lazy`, which PyTorch asks for the state of a device of this type."""

import functools
from collections.abc import Callable
from contextlib import nullcontext
from types import ModuleType
from typing import Any, Final

import torch

from xpurt import _lazy

# Of an ordinal: lazy:1 is xpu:1, with its memory and its random generator.
_OF_DEVICE: Final = (
    *("current_device", "set_device", "device_count", "is_available", "device"),
    *("manual_seed", "manual_seed_all", "initial_seed", "seed", "seed_all"),
    *("get_rng_state", "set_rng_state"),
    *("mem_get_info", "memory_stats", "empty_cache", "reset_peak_memory_stats"),
    *("memory_allocated", "max_memory_allocated"),
    *("memory_reserved", "max_memory_reserved"),
)


def _of_cpu() -> dict[str, Callable[..., Any]]:
    """PyTorch has one CPU, whose generator is the default one, and counts no memory."""
    generator = torch.default_generator
    return {
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "device_count": lambda: 1,
        "is_available": lambda: True,
        "device": lambda device: nullcontext(),
        "manual_seed": generator.manual_seed,
        "manual_seed_all": generator.manual_seed,
        "initial_seed": generator.initial_seed,
        "seed": generator.seed,
        "seed_all": generator.seed,
        "get_rng_state": lambda device=None: generator.get_state(),
        "set_rng_state": lambda state, device=None: generator.set_state(state),
        "empty_cache": lambda: None,
        "synchronize": lambda device=None: None,
    }


class _Stream:
    """A stream of a lazy device. What is traced runs in the order of the program, so streams
    order nothing."""

    def __init__(self, *arguments: Any, **named: Any) -> None: ...

    def wait_event(self, event: Any) -> None: ...

    def wait_stream(self, stream: Any) -> None: ...

    def record_event(self, event: "_Event | None" = None) -> "_Event":
        return event or _Event()

    def synchronize(self) -> None:
        synchronize()

    def query(self) -> bool:
        return True


class _Event:
    """The same, of an event."""

    def __init__(self, *arguments: Any, **named: Any) -> None: ...

    def record(self, stream: Any = None) -> None: ...

    def wait(self, stream: Any = None) -> None: ...

    def synchronize(self) -> None:
        synchronize()

    def query(self) -> bool:
        return True


_THE_STREAM: Final = _Stream()


@functools.cache
def define() -> None:
    """A second call does nothing."""
    module = ModuleType("torch.lazy", __doc__)
    for name in _OF_DEVICE:
        setattr(module, name, _of_device(name))
    members: dict[str, Any] = {
        "_initialized": True,  # checkpoints keep the state of such a device alone
        "is_initialized": lambda: True,
        "synchronize": synchronize,
        "Stream": _Stream,
        "Event": _Event,
        "stream": lambda stream: nullcontext(),
        "current_stream": lambda device=None: _THE_STREAM,
        "default_stream": lambda device=None: _THE_STREAM,
    }
    vars(module).update(members)
    torch._register_device_module("lazy", module)  # type: ignore[no-untyped-call]


def synchronize(device: Any = None) -> None:
    """Runs what was traced, and waits for it."""
    from torch._lazy import mark_step  # not there in every build of PyTorch

    mark_step(wait=True)
    wait(device)


def wait(device: Any = None) -> None:
    """Waits for what ran."""
    _function("synchronize")(_real(device) if _is_device(device) else device)


def _of_device(name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        function = _function(name)
        moved = [_real(each) if _is_device(each) else each for each in arguments]
        named = {
            key: _real(each) if _is_device(each) else each
            for key, each in named.items()
        }
        return function(*moved, **named)

    of_xpu = getattr(torch.xpu, name)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = of_xpu.__doc__
    return call


def _function(name: str) -> Callable[..., Any]:
    """That of the type behind lazy devices."""
    behind = _lazy.lazy_device_type()
    if behind == "cpu":
        found = _of_cpu().get(name)
    else:
        found = getattr(torch.get_device_module(behind), name, None)
    if found is None:
        raise NotImplementedError(
            f'torch.lazy.{name} is that of the device behind lazy tensors, "{behind}", '
            'which has none. xpurt.lazy.init(device="xpu") chooses one that has.'
        )
    return found


def _real(device: Any) -> Any:
    behind, index = _lazy.lazy_device_type(), torch.device(device).index
    return behind if index is None or behind == "cpu" else torch.device(behind, index)


def _is_device(value: Any) -> bool:
    return isinstance(value, (str, torch.device))
