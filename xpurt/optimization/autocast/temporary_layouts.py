"""Tensors that have a layout for a while: channels last where PyTorch's own autocast
would make plain ones.

Note [Temporary layouts]
~~~~~~~~~~~~~~~~~~~~~~~~
A convolution in a block of autocast makes its result in channels last, and ops that keep
the layout hand it on. The program is to see none of it: strides, views and NumPy arrays
are those of a plain tensor. So the first op that is not on the list of ops that keep the
layout makes the tensor plain, and the end of the block those that the program still
holds. The tensor object stays: its bytes are exchanged (`tensor.data = ...`), so
gradients, versions and all names of it stay too.

This is sound because such a tensor has no alias with which it shares bytes: ops that
make views are not on the list, so they get a plain tensor. What autograd has saved is
the same tensor object, or a constant that shares the version counter and is checked
against writes.

A graph of xpu records PyTorch's own convolutions: the program knows their results by
the memory that the graph writes.

Tensors that only autograd holds are left alone at the end of the block: nobody can look
at them, and the backward pass wants the layout.
"""

import sys
import weakref
from typing import Any

import torch
from torch import Tensor

from xpurt.functional.convolutions import is_channels_last


class TemporaryLayouts:
    """The tensors of one thread with a temporary layout. Of use only while no function
    mode is active."""

    def __init__(self) -> None:
        self._tensors: dict[int, weakref.ref[Tensor]] = {}

    def __bool__(self) -> bool:
        return bool(self._tensors)

    def __contains__(self, value: Any) -> bool:
        return id(value) in self._tensors

    def add(self, tensor: Tensor) -> None:
        """Notes a new tensor; a plain one needs no note."""
        if is_channels_last(tensor):
            key = id(tensor)
            tensors = self._tensors
            tensors[key] = weakref.ref(tensor, lambda _: tensors.pop(key, None))

    def has_any(self, values: Any) -> bool:
        """Whether one of the values, or of the lists among them, is such a tensor."""
        return any(
            self.has_any(value)
            if type(value) in (list, tuple)
            else id(value) in self._tensors
            for value in values
        )

    def make_plain(self, value: Any) -> None:
        """Makes the tensors in `value` plain, in containers of Python too."""
        if id(value) in self._tensors:
            self._exchange(value)
        elif isinstance(value, list | tuple):
            for each in value:
                self.make_plain(each)
        elif isinstance(value, dict):
            for each in value.values():
                self.make_plain(each)

    def make_all_plain(self) -> None:
        """Makes plain what the program holds, and forgets the rest."""
        probe = torch.empty(0)
        of_one_name = _references(probe)
        for key in list(self._tensors):
            reference = self._tensors.get(key)
            tensor = None if reference is None else reference()
            if tensor is not None and _references(tensor) > of_one_name:
                self._exchange(tensor)
            del tensor
        self._tensors.clear()

    def _exchange(self, tensor: Tensor) -> None:
        if tensor.is_xpu and torch.xpu.is_current_stream_capturing():
            raise RuntimeError(
                "a tensor of a block of xpurt.autocast can't be made plain while a graph "
                f"is recorded, since the graph runs later; found {tuple(tensor.shape)}, "
                "made before. Begin the block within the recording, or use "
                "x.contiguous() before it"
            )
        del self._tensors[id(tensor)]
        tensor.data = tensor.detach().contiguous()


def _references(tensor: Tensor) -> int:
    """References of Python to the tensor, and a constant. C++ has one to the Python
    object while the object isn't alone in holding the tensor."""
    of_cpp = 1 if torch.Tensor._use_count(tensor) > 1 else 0  # type: ignore[attr-defined]
    return sys.getrefcount(tensor) - of_cpp
