"""The devices behind those of the type "lazy": see Note [Types behind lazy devices] in
csrc/lazy/real_devices.h."""

import gc

import torch

from xpurt import _lazy
from xpurt.lazy import one_backend


def check_type(name: str) -> None:
    """Raises ValueError if there is no device of the type, or lazy tensors can't be on it."""
    known = _lazy.lazy_device_types()
    if name not in known:
        raise ValueError(
            f"device is one of {', '.join(map(repr, known))}; found {name!r}. "
            "xpurt.prototype_device() makes a device of another type."
        )


def choose_type(name: str) -> None:
    """Lazy tensors that are made from now on are on devices of the type. Raises RuntimeError
    while lazy tensors are alive on another one."""
    if name == _lazy.lazy_device_type():
        return
    gc.collect()  # tensors in cycles
    _lazy.set_lazy_device_type(name)


def real_device(device: torch.device | str = "lazy") -> torch.device:
    """The device behind a lazy one: of `lazy:1` it is `xpu:1`, after
    `xpurt.lazy.init(device="cpu")` that of `lazy` is `cpu`. Without an index it is that of
    the current device.

    Raises ValueError for a device of another type, IndexError if there is none with the
    index, and RuntimeError before `init`.
    """
    one_backend.check_there("xpurt.lazy.real_device()")
    found = torch.device(device)
    if found.type != "lazy":
        raise ValueError(
            f'real_device() takes a device of the type "lazy"; found {found}. '
            "xpurt.lazy.lazy_device() is the reverse."
        )
    return _lazy.real_device(found)


def lazy_device(device: torch.device | str) -> torch.device:
    """The lazy device that stands for `device`: the reverse of `real_device`.

    Raises ValueError for a device of a type that is not behind lazy ones now, IndexError if
    there is none with the index, and RuntimeError before `init`.
    """
    one_backend.check_there("xpurt.lazy.lazy_device()")
    found, behind = torch.device(device), _lazy.lazy_device_type()
    if found.type != behind:
        raise ValueError(
            f'lazy tensors are on "{behind}"; found {found}. '
            f'xpurt.lazy.init(device="{found.type}") puts them there.'
        )
    return _lazy.lazy_device(found)
