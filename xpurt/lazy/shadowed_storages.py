"""Lazy tensors in place of xpu tensors that were there before they were traced."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from xpurt import _lazy


@dataclass(slots=True)
class _Shadow:
    """A storage, and its lazy tensor: both are its elements in their order."""

    memory: Tensor
    lazy: Tensor
    value: Tensor  # what `memory` was last equal to


class ShadowedStorages:
    """A lazy tensor for each storage that was met, and views of it for its tensors."""

    def __init__(self) -> None:
        self._shadows: dict[int, _Shadow] = {}
        self._lazy: Any = WeakIdKeyDictionary()

    def lazy(self, tensor: Tensor) -> Tensor:
        """The lazy tensor that stands for an xpu tensor. Raises NotImplementedError if
        tensors of two dtypes share memory."""
        place = _place(tensor)
        found: tuple[Any, Tensor] | None = self._lazy.get(tensor)
        if found is None or found[0] != place:  # such as after `tensor.data = other`
            found = self._lazy[tensor] = place, self._made(tensor.data)
        return found[1]

    def write_back(self) -> None:
        """Copies what was written, after the graphs have run."""
        for each in self._shadows.values():
            value = _lazy.real_value(each.lazy)
            if value.untyped_storage()._cdata != each.value.untyped_storage()._cdata:
                each.memory.copy_(value)
                each.value = value

    def _made(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        shadow = self._shadows.get(storage._cdata)
        if shadow is None:
            count = storage.nbytes() // tensor.element_size()
            memory = tensor.as_strided((count,), (1,), 0)
            shadow = _Shadow(memory, _lazy.lazy_over(memory), memory)
            self._shadows[storage._cdata] = shadow
        if shadow.memory.dtype != tensor.dtype:
            raise NotImplementedError(
                f"tensors of {shadow.memory.dtype} and {tensor.dtype} share memory, which "
                f"can't be traced. Clone one of them before the mode."
            )
        return _view(shadow.lazy, tensor)


def _place(tensor: Tensor) -> Any:
    storage = tensor.untyped_storage()._cdata
    return storage, tensor.storage_offset(), tensor.size(), tensor.stride()


def _view(memory: Tensor, like: Tensor) -> Tensor:
    """The view of all elements that has the place of another one, by the simplest ops."""
    order = sorted(range(like.dim()), key=like.stride, reverse=True)
    dense = like.permute(order)
    if not dense.is_contiguous():
        return memory.as_strided(like.size(), like.stride(), like.storage_offset())
    if like.numel() != memory.numel():
        memory = memory.narrow(0, like.storage_offset(), like.numel())
    found = memory.view(dense.size())
    if order == sorted(order):
        return found
    return found.permute([order.index(dim) for dim in range(like.dim())])
