"""What distinguishes the contents of a weight from those before and after."""

from typing import Any

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef


class WeightVersion:
    """Of a weight: the count of its writes, its storage and its place in there. A write
    that autograd does not count, through `.data` or NumPy, makes no other version."""

    __slots__ = ("_state", "_storage")

    def __init__(self, weight: Tensor) -> None:
        self._state = _state(weight)
        # While it lives, no other storage has the same address.
        self._storage = StorageWeakRef(weight.untyped_storage())  # type: ignore[no-untyped-call]

    def is_of(self, weight: Tensor) -> bool:
        return self._state == _state(weight)


def _state(weight: Tensor) -> tuple[Any, ...]:
    return (
        weight._version,
        weight.untyped_storage()._cdata,
        weight.storage_offset(),
        weight.shape,
        weight.stride(),
        weight.dtype,
    )
