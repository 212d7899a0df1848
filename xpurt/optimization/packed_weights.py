"""Weights in the layout of a primitive, made once per version of the parameters.

Note [Packs of a layer]
~~~~~~~~~~~~~~~~~~~~~~~
A pack is made of a layer's parameters, and of the statistics of a batch norm that is
folded into them. It is good as long as these are the same memory in the same version: an
optimizer's step, `load_state_dict` and any other write change the version. A write
through `.data` or through NumPy does not; `forget_packs` is for those. Packs lie beside
the module, are dropped with it, and are neither copied nor saved.

`fully_shard` gathers parameters into the same memory in each call, and keeps the version
as it was. So a layer that had a sharded parameter has no packs any more: they would be
wrong after the next step, and hold in each rank what was sharded.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import Tensor, nn

from xpurt.optimization.weight_version import WeightVersion

# Of each layer: one per shape of the input that the primitive's layout depends on.
_MOST: Final = 8

_packs: WeakKeyDictionary[nn.Module, dict[int, "_Packs"]] = WeakKeyDictionary()
_never_packed: WeakSet[nn.Module] = WeakSet()
_lock: Final = threading.Lock()


class _Packs:
    """Those of one version of the parameters."""

    def __init__(self, parameters: tuple[Tensor | None, ...]) -> None:
        self.versions = tuple(
            None if each is None else WeightVersion(each) for each in parameters
        )
        self.by_use: OrderedDict[Hashable, Any] = OrderedDict()

    def are_of(self, parameters: tuple[Tensor | None, ...]) -> bool:
        return len(self.versions) == len(parameters) and all(
            each is None
            if version is None
            else each is not None and version.is_of(each)
            for version, each in zip(self.versions, parameters, strict=True)
        )


def packed(
    layer: nn.Module,
    parameters: tuple[Tensor | None, ...],
    use: Hashable,
    pack: Callable[[], Any],
) -> Any:
    """What `pack()` made for this use of the layer, made again if a parameter changed.
    Parameters of other layers that are joined to it come after its own."""
    with _lock:
        by_count = _packs.setdefault(layer, {})
        found = by_count.get(len(parameters))
        if found is None or not found.are_of(parameters):
            found = by_count[len(parameters)] = _Packs(parameters)
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


def may_be_packed(layer: nn.Module) -> bool:
    """Whether all writes to the parameters of the layer are counted. Those of
    FullyShardedDataParallel are no parameters in a call."""
    kinds = [type(each) for each in (layer.weight, layer.bias) if each is not None]
    plain = all(kind is nn.Parameter for kind in kinds)
    return plain and layer not in _never_packed


def never_pack(layer: nn.Module) -> None:
    """The parameters of the layer change without a count from now on."""
    with _lock:
        _never_packed.add(layer)
        _packs.pop(layer, None)


def forget_packs(model: nn.Module) -> None:
    """Drops the packed weights of all layers of a model, as after writes that autograd
    does not count."""
    with _lock:
        for each in model.modules():
            _packs.pop(each, None)
