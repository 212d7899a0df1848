"""The types of devices on which PyTorch's optimizers take `capturable=True` and `fused=True`.

PyTorch lists them. With capturable=True the number of steps is a tensor on the device, so that
a graph of a step has no number that changes.
"""

import functools
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Final

_FUSED: Final = "_get_fused_kernels_supported_devices"
_types: Final[dict[str, list[str]]] = {
    "_get_capturable_supported_devices": [],
    _FUSED: [],
}


def allow(device_type: str, fused: bool) -> None:
    """From now on optimizers of parameters on the type take capturable=True. fused: and
    fused=True, too."""
    _lengthen()
    for name, types in _types.items():
        if device_type not in types and (fused or name != _FUSED):
            types.append(device_type)


@functools.cache
def _lengthen() -> None:
    from torch.optim import optimizer

    modules = [
        module
        for name, module in sys.modules.items()
        if name.startswith("torch.optim.")
    ]
    for name, more in _types.items():
        before = getattr(optimizer, name)
        replace(before, _longer(before, more), modules)


def _longer(
    before: Callable[..., list[str]], more: list[str]
) -> Callable[..., list[str]]:
    @functools.wraps(before)
    def types(*args: bool, **kwargs: bool) -> list[str]:
        return [*before(*args, **kwargs), *more]

    return types


def replace(
    before: Callable[..., Any], after: Callable[..., Any], modules: Iterable[ModuleType]
) -> None:
    """From now on the optimizers of these modules call `after`. TorchScript compiles
    `before`, in those of torch.distributed.optim."""
    setattr(after, "__prepare_scriptable__", lambda: before)  # noqa: B010
    for module in modules:
        if vars(module).get(before.__name__) is before:
            setattr(module, before.__name__, after)
