"""Operands between fences: memory around the elements, and in the gaps between them, that
no kernel may read.

A kernel that reads beyond its operand usually finds memory, and numbers in it. Here it
finds NaN, or an integer that is out of range everywhere; so the result is wrong, and not
only when a neighbour happens to matter.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

FENCE: Final = 4160  # elements on each side
FENCE_INTEGER: Final = 1 << 30

Strides = Callable[[Sequence[int]], list[int]]


def _dense(shape: Sequence[int], order: Sequence[int], gaps: int = 0) -> list[int]:
    """Strides for dimensions in this order in memory, the slowest first. `gaps` is added
    to the size of each dimension, so that no two of them are one in memory."""
    strides, step = [0] * len(shape), 1 + bool(gaps)
    for dim in reversed(order):
        strides[dim] = step
        step *= shape[dim] + gaps
    return strides


def _contiguous(shape: Sequence[int]) -> list[int]:
    return _dense(shape, range(len(shape)))


def _turned(shape: Sequence[int]) -> list[int]:
    return _dense(shape, range(len(shape))[::-1])


def _rolled(shape: Sequence[int]) -> list[int]:
    """The first dimension is the fastest; the others follow as they are."""
    return _dense(shape, [*range(1, len(shape)), *range(min(len(shape), 1))])


def _stepped(shape: Sequence[int]) -> list[int]:
    return _dense(shape, range(len(shape)), gaps=1)


def _expanded(shape: Sequence[int]) -> list[int]:
    strides = _contiguous(shape)
    return [0, *strides[1:]] if len(shape) > 1 else strides


LAYOUTS: Final[Mapping[str, Strides]] = {
    "contiguous": _contiguous,
    "turned": _turned,
    "stepped": _stepped,
    "rolled": _rolled,
    "expanded": _expanded,
}
# Those in which the elements of a line differ, and each has a place of its own.
UNEQUAL: Final = tuple(name for name in LAYOUTS if name != "expanded")


def fenced(values: Tensor, layout: str = "contiguous", shift: int = 0) -> Tensor:
    """A copy of `values` with these strides, between fences. `shift`: elements by which
    it begins later."""
    shape = values.shape
    strides = LAYOUTS[layout](shape)
    last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    many = 0 if values.numel() == 0 else last + 1
    outside: Any = FENCE_INTEGER if values.dtype.itemsize >= 4 else 77
    if values.is_floating_point() or values.is_complex():
        outside = float("nan")
    elif values.dtype == torch.bool:
        outside = True
    base = torch.full((many + 2 * FENCE + shift,), outside, dtype=values.dtype)
    made = base.as_strided(shape, strides, FENCE + shift)
    if layout == "expanded" and len(shape) > 1 and shape[0] > 0:
        made[0].copy_(values[0])
    else:
        made.copy_(values)
    return made


def canary(like: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
    """A tensor for a result like this one, within a larger one that is returned, too."""
    whole = torch.full((like.numel() + 2 * FENCE,), 77, dtype=like.dtype, device=device)
    return whole[FENCE : FENCE + like.numel()].view(like.shape), whole


def is_intact(whole: Tensor) -> bool:
    ends = torch.cat([whole[:FENCE], whole[-FENCE:]]).cpu()
    return bool((ends == torch.full_like(ends, 77)).all())


def widened(inputs: Any) -> Any:
    """The same numbers in float64."""

    def wide(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        if leaf.is_complex():
            return leaf.to(torch.complex128)
        return leaf.double() if leaf.is_floating_point() else leaf

    return tree_map(wide, inputs)


@dataclass
class Operands:
    """Makes the operands of a call. The first one has the layout that is asked for, the
    others the next ones in turn."""

    layout: str
    dtype: torch.dtype
    seed: int
    shift: int = 0
    _made: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.draw = torch.Generator().manual_seed(self.seed)

    def __call__(
        self,
        *shape: int,
        values: str = "normal",
        most: int = 4,
        marks: int = -1,
        layout: str | None = None,
    ) -> Tensor:
        """A tensor of these values.

        values: "normal" numbers; "small" integers that are not 0, whose sums are exact;
            "signs", 1 and -1; "distinct" integers; "unit" numbers between 0 and 1;
            "bool"; "index", integers from 0 below `most`; "rising", even integers in
            order along the last dimension.
        marks: of each line along this dimension, the last element matters most: it is
            the largest one of every other line, and the least one of the others.
        """
        found = self._drawn(shape, values, most)
        if marks >= 0 and found.numel():
            self._mark(found, values, marks)
        number, self._made = self._made, self._made + 1
        if layout is None:
            layout = self.layout if number == 0 else self._next(number)
        return fenced(found, layout, self.shift)

    def _next(self, number: int) -> str:
        first = UNEQUAL.index(self.layout) if self.layout in UNEQUAL else 0
        return UNEQUAL[(first + number) % len(UNEQUAL)]

    def _drawn(self, shape: Sequence[int], values: str, most: int) -> Tensor:
        draw, dtype = self.draw, self.dtype
        if values == "bool":
            return torch.rand(shape, generator=draw) < 0.5
        if values == "index":
            return torch.randint(0, max(most, 1), shape, generator=draw)
        if values == "rising":
            steps = torch.arange(shape[-1]) * 2
            return steps.expand(shape).to(dtype)
        if values == "small":
            found = torch.randint(1, 4, shape, generator=draw)
            if dtype != torch.bool and dtype.is_signed:
                found *= 1 - 2 * (torch.rand(shape, generator=draw) < 0.3).long()
            return found.to(dtype)
        if values == "signs":
            return (1 - 2 * (torch.rand(shape, generator=draw) < 0.5).int()).to(dtype)
        if values == "distinct":
            count = 1
            for size in shape:
                count *= size
            found = torch.randperm(count, generator=draw).view(shape) - count // 2
            return found.to(dtype)
        if values == "unit":
            return (torch.rand(shape, generator=draw) * 0.8 + 0.1).to(dtype)
        found = torch.randn(shape, generator=draw)
        return (
            (found * 20).to(dtype) if not dtype.is_floating_point else found.to(dtype)
        )

    def _mark(self, found: Tensor, values: str, dim: int) -> None:
        size = found.size(dim)
        lines = found.select(dim, size - 1)
        even = (torch.arange(lines.numel()) % 2 == 0).view(lines.shape)
        if values == "bool":
            # All lines but their last elements are False, or True.
            found.copy_(~even.unsqueeze(dim).expand_as(found))
            lines.copy_(even)
        elif values == "distinct":
            far = found.numel()
            lines += torch.where(even, far, -far).to(found.dtype)
        else:
            by = float(torch.tensor(float(size)).log() + 2)
            lines += torch.where(even, by, -by).to(found.dtype)
