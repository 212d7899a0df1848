"""Weights in the layout of a primitive, made once per version of the parameters.

Note [Packs of a weight]
~~~~~~~~~~~~~~~~~~~~~~~~
A pack is made of a weight, of its bias, and of the statistics of a batch norm that is
folded into them. It is good as long as these are the same memory in the same version: an
optimizer's step, `load_state_dict` and any other write change the version. A write
through `.data` or through NumPy does not; `forget_packs` is for those. Packs lie beside
the weight, are dropped with it, and are neither copied nor saved.

`fully_shard` gathers parameters into the same memory in each call, and keeps the version
as it was. So a layer that had a sharded parameter has no packs any more: they would be
wrong after the next step, and hold in each rank what was sharded.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, MutableMapping
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from xpurt.optimization.weight_version import WeightVersion

# Of each weight: one per shape of the input that the primitive's layout depends on.
_MOST: Final = 8

# By the weight; None if it is never packed.
_packs: MutableMapping[Tensor, "dict[int, _Packs] | None"] = WeakIdKeyDictionary()
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
    parameters: tuple[Tensor | None, ...],
    use: Hashable,
    pack: Callable[[], Any],
) -> Any:
    """What `pack()` made for this use of the parameters, made again if one changed. The
    first is the weight; its bias and what is folded into it, or joined to it, follow."""
    weight, *_ = parameters
    assert weight is not None
    with _lock:
        by_count = _packs.setdefault(weight, {})
        if by_count is None:
            return pack()
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


def may_be_packed(*parameters: Tensor | None) -> bool:
    """Whether all writes to the parameters are counted. Those of
    FullyShardedDataParallel are no parameters in a call."""
    return all(
        each is None
        or (type(each) is nn.Parameter and _packs.get(each, {}) is not None)
        for each in parameters
    )


def never_pack(parameter: Tensor) -> None:
    """The parameter changes without a count from now on."""
    with _lock:
        _packs[parameter] = None


def forget_packs(model: nn.Module) -> None:
    """Drops the packed weights of all layers of a model, as after writes that autograd
    does not count."""
    with _lock:
        for each in model.parameters():
            if _packs.get(each) is not None:
                del _packs[each]
