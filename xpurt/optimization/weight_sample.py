"""Elements of a weight by which a write is told that autograd does not count.

Note [Samples of weights]
~~~~~~~~~~~~~~~~~~~~~~~~~
A comparison of all elements reads four bytes of each in every call, where a product in
bfloat16 reads two. So of a larger weight some elements are compared: one out of each of
1024 ranges of equal length, at a place that is random within its range. Such places are
aligned with no dimension. A write that changes a part p of the elements, wherever they
are, stays unseen with a probability below (1 - p) ** 1024: 3% if 1 in 300 changes. A
write to the whole of a range is always seen.

Rejected: a constant step, which is aligned with a dimension of most weights (a step of
288 sees [o, 0, 0, 0] of a weight of (64, 32, 3, 3)); a checksum of all elements, for its
time; storages that are copied on write, which give the parameter another address.
"""

import random
from functools import lru_cache
from typing import Final

import torch
from torch import Tensor

MOST: Final = 1024  # elements; a weight of no more is compared in all of them


class WeightSample:
    """The elements as they were when the sample was made."""

    __slots__ = ("_places", "_seen")

    def __init__(self, weight: Tensor) -> None:
        self._places = _offsets(weight)
        self._seen = self._of(weight)

    def is_of(self, weight: Tensor) -> bool:
        """Of a weight with the same place in its memory."""
        return torch.equal(self._seen, self._of(weight))

    def _of(self, weight: Tensor) -> Tensor:
        memory = weight.detach().as_strided(
            (reach(weight) + 1,), (1,), weight.storage_offset()
        )
        return memory.index_select(0, self._places)


def reach(weight: Tensor) -> int:
    """How far the last element is from the first one."""
    return sum(
        (size - 1) * stride
        for size, stride in zip(weight.shape, weight.stride(), strict=True)
    )


def _offsets(weight: Tensor) -> Tensor:
    """Of the places from the first element, on the device of the weight."""
    offsets = torch.zeros((), dtype=torch.int64)
    rest = torch.tensor(places(weight.numel()))
    for size, stride in zip(
        reversed(weight.shape), reversed(weight.stride()), strict=True
    ):
        offsets = offsets + rest % size * stride
        rest = rest // size
    return offsets.expand(rest.shape).contiguous().to(weight.device)


@lru_cache
def places(size: int) -> tuple[int, ...]:
    """The elements of `size` that are compared, by their number."""
    if size <= MOST:
        return tuple(range(size))
    at = random.Random(size)  # the same in each process
    return tuple(
        at.randrange(size * part // MOST, size * (part + 1) // MOST)
        for part in range(MOST)
    )
