"""Weights in the layout of a primitive, made once per version of the parameters.

Note [Packs of a layer]
~~~~~~~~~~~~~~~~~~~~~~~
A pack is made of a layer's parameters, and of the statistics of a batch norm that is
folded into them. It is good as long as these are the same memory in the same version,
which is what autograd counts: an optimizer's step, `load_state_dict` and any other write
change the version. A write through `.data` or through NumPy does not; `forget_packs`
is for those. Packs lie beside the module, are dropped with it, and are neither copied
nor saved.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

# Of each layer: one per shape of the input that the primitive's layout depends on.
_MOST: Final = 8

_packs: WeakKeyDictionary[nn.Module, "_Packs"] = WeakKeyDictionary()
_lock: Final = threading.Lock()


class _Packs:
    def __init__(self, versions: Hashable) -> None:
        self.versions = versions
        self.by_use: OrderedDict[Hashable, Any] = OrderedDict()


def packed(
    layer: nn.Module,
    parameters: tuple[Tensor | None, ...],
    use: Hashable,
    pack: Callable[[], Any],
) -> Any:
    """What `pack()` made for this use of the layer, made again if a parameter changed."""
    versions = tuple(
        None if each is None else (each.data_ptr(), each._version)
        for each in parameters
    )
    with _lock:
        found = _packs.get(layer)
        if found is None or found.versions != versions:
            found = _packs[layer] = _Packs(versions)
        if use in found.by_use:
            found.by_use.move_to_end(use)
            return found.by_use[use]
    with torch.no_grad():
        made = pack()
    with _lock:
        found.by_use[use] = made
        if len(found.by_use) > _MOST:
            found.by_use.popitem(last=False)
    return made


def forget_packs(model: nn.Module) -> None:
    """Drops the packed weights of all layers of a model, as after writes that autograd
    does not count."""
    with _lock:
        for each in model.modules():
            _packs.pop(each, None)
