"""Memory for float32 tensors that live for a part of an optimizer's step.

On the CPU it is kept between steps: fresh pages from the system take longer than what is
computed on them. Allocators of devices keep theirs.
"""

from typing import Final

import torch
from torch import Tensor

_ALIGNMENT: Final = 16  # elements


def padded(elements: int) -> int:
    """The elements of memory that a tensor of so many takes."""
    return -(-elements // _ALIGNMENT) * _ALIGNMENT


class Scratch:
    """Gives out tensors one after the other, until all are taken back at once."""

    def __init__(self, elements: int) -> None:
        """Memory for that many float32 elements, from the first use on."""
        self._elements = elements
        self._memory: Tensor | None = None
        self._used = 0

    def empty_like(self, x: Tensor) -> Tensor:
        """A float32 tensor with the shape and strides of a dense one, uninitialized. What
        does not fit is allocated."""
        begin, end = self._used, self._used + padded(x.numel())
        if not x.is_cpu or end > self._elements:
            return torch.empty_like(x, dtype=torch.float32)
        if self._memory is None:
            self._memory = torch.empty(self._elements, dtype=torch.float32)
        self._used = end
        return self._memory.as_strided(x.shape, x.stride(), begin)

    def take_back(self) -> None:
        """The tensors that were given out are used no more."""
        self._used = 0
