"""Weights in another dtype or layout, made once per version of the parameters.

Note [Packs of a weight]
~~~~~~~~~~~~~~~~~~~~~~~~
A pack is made of a weight, of its bias, and of the statistics of a batch norm that is
folded into them. It is good as long as these are the same memory in the same version: an
optimizer's step, `load_state_dict` and any other write change the version. Packs lie beside
the weight, are dropped with it, and are neither copied nor saved.

A write through `.data`, through NumPy or through memory that another program shares changes
no version. For `xpurt.optimize` there is `forget_packs`. A block of autocast compares, at
the first use in each outermost block, elements of the weight with those of the pack: see
weight_sample.py. From then on it is noticed if somebody takes a pointer to write by.
(torch.autocast keeps converted weights until its outermost block ends, and only of leaves
that require gradients.)

`fully_shard` gathers parameters into the same memory in each call, and keeps the version
as it was. So a layer that had a sharded parameter has no packs any more: they would be
wrong after the next step, and hold in each rank what was sharded.
"""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, Protocol

import torch
from torch import Tensor, nn

from xpurt import mapping
from xpurt.optimization.weight_version import WeightVersion

# Of each weight: one per shape of the input that the primitive's layout depends on.
MOST: Final = 8


class Unwritten(Protocol):
    """A weight as it was, in a block of autocast."""

    def is_unwritten(self, weight: Tensor) -> bool: ...


WriteWatch = Callable[[Tensor], Unwritten]


class _Packs:
    """Those of one version of the parameters."""

    def __init__(
        self, parameters: tuple[Tensor | None, ...], watch: WriteWatch | None
    ) -> None:
        self.versions = tuple(
            None if each is None else WeightVersion(each) for each in parameters
        )
        weight = parameters[0]
        assert weight is not None
        self.watched = None if watch is None else watch(weight)
        self.by_use: OrderedDict[Hashable, Any] = OrderedDict()

    def are_of(
        self, parameters: tuple[Tensor | None, ...], watch: WriteWatch | None
    ) -> bool:
        for version, each in zip(self.versions, parameters, strict=True):
            if version is None or each is None:
                if version is not None or each is not None:
                    return False
            elif not version.is_of(each):
                return False
        if watch is None:
            return True
        weight = parameters[0]
        assert weight is not None
        return self.watched is not None and self.watched.is_unwritten(weight)

    def make(self, weight: Tensor, use: Hashable, pack: Callable[[], Any]) -> Any:
        with torch.no_grad():
            made = pack()
        with _lock:
            self.by_use[use] = made
            if len(self.by_use) > MOST:
                self.by_use.popitem(last=False)
        return made


# By the id of the weight: the weight, and its packs by the number of the parameters; None
# if it is never packed.
_known: dict[int, tuple["weakref.ref[Tensor]", dict[int, _Packs] | None]] = {}
_lock: Final = threading.RLock()
_UNKNOWN: Final[tuple[None, dict[int, _Packs]]] = None, {}


def packed(
    parameters: tuple[Tensor | None, ...],
    use: Hashable,
    pack: Callable[[], Any],
    watch: WriteWatch | None = None,
) -> Any:
    """What `pack()` made for this use of the parameters, made again if one changed. The
    first is the weight; its bias and what is folded into it, or joined to it, follow.
    watch: the weight as it is now, within a block of autocast."""
    weight = parameters[0]
    assert weight is not None
    with _lock:
        by_count = _by_count(weight)
        if by_count is None:
            return pack()
        found = by_count.get(len(parameters))
        if found is None or not found.are_of(parameters, watch):
            found = by_count[len(parameters)] = _Packs(parameters, watch)
        if use in found.by_use:
            found.by_use.move_to_end(use)
            return found.by_use[use]
    return found.make(weight, use, pack)


def _by_count(weight: Tensor) -> dict[int, _Packs] | None:
    known = _known.get(id(weight))
    if known is not None:
        return known[1]
    made: dict[int, _Packs] = {}
    _put(weight, made)
    return made


def _put(weight: Tensor, packs: dict[int, _Packs] | None) -> None:
    key = id(weight)
    _known[key] = weakref.ref(weight, lambda _: _known.pop(key, None)), packs


def has_packs(weight: Tensor) -> bool:
    """Whether there is a pack of the weight now."""
    known = _known.get(id(weight))
    return known is not None and bool(known[1])


def may_be_packed(*parameters: Tensor | None) -> bool:
    """Whether all writes to the parameters are counted. Those of
    FullyShardedDataParallel are no parameters in a call."""
    for each in parameters:
        if each is None:
            continue
        if type(each) is not nn.Parameter or _known.get(id(each), _UNKNOWN)[1] is None:
            return False
    return True


def never_pack(parameter: Tensor) -> None:
    """The parameter changes without a count from now on."""
    with _lock:
        _put(parameter, None)


def forget_packs(model: nn.Module) -> None:
    """Drops the packed weights of all layers of a model, as after writes that autograd
    does not count."""
    with _lock:
        for each in model.parameters():
            if has_packs(each):
                del _known[id(each)]


def _forget_all() -> None:
    """A packed weight is for one device."""
    with _lock:
        for key in [key for key, (_, packs) in _known.items() if packs is not None]:
            del _known[key]


mapping.on_change(_forget_all)


def count() -> int:
    """How many weights have packs."""
    return sum(bool(packs) for _, packs in _known.values())
