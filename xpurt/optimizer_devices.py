"""The types of devices on which PyTorch's optimizers take `capturable=True` and `fused=True`.

PyTorch lists them. With capturable=True the number of steps is a tensor on the device, so that
a graph of a step has no number that changes.
"""

import functools
import sys
from collections.abc import Callable
from typing import Final

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

    longer = {name: _longer(getattr(optimizer, name), _types[name]) for name in _types}
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("torch.optim."):
            for name in longer.keys() & vars(module).keys():
                setattr(module, name, longer[name])


def _longer(
    before: Callable[..., list[str]], more: list[str]
) -> Callable[..., list[str]]:
    @functools.wraps(before)
    def types(*args: bool, **kwargs: bool) -> list[str]:
        return [*before(*args, **kwargs), *more]

    # Of optimizers that TorchScript compiles, as those of torch.distributed.optim.
    setattr(types, "__prepare_scriptable__", lambda: before)  # noqa: B010
    return types
