"""The sizes of a call, case by case."""

import math
import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from xpurt_tools.conformance.sweeps.shapes_constants import sizes
from xpurt_tools.conformance.sweeps.shapes_operands import LAYOUTS, Operands


@dataclass(frozen=True, slots=True)
class Case:
    """sizes: by the call's axes. parts: into how many dimensions an axis is divided that
    can be. layout: of the first operand."""

    sizes: Mapping[str, int]
    layout: str = "contiguous"
    parts: int = 1
    seed: int = 0

    def __getitem__(self, axis: str) -> int:
        return self.sizes[axis]

    def dims(self, axis: str) -> tuple[int, ...]:
        """The axis as up to three dimensions; none if its size is 1."""
        rest = self.sizes[axis]
        if rest == 1 and self.parts < 3:
            return ()
        found: list[int] = []
        for _ in range(self.parts - 1):
            part = next((n for n in (3, 2, 5, 7) if rest % n == 0 and n < rest), 1)
            found.append(part)
            rest //= part
        return (*found, rest)

    def __str__(self) -> str:
        named = ", ".join(f"{axis} {size:,}" for axis, size in self.sizes.items())
        return f"{named}; {self.layout}, {self.parts} dimensions an axis"


Make = Callable[[Operands, Case], tuple[Any, ...]]

COMPANIONS = (1, 2, 3, 7, 10, 17, 33, 65, 100)


@dataclass(frozen=True)
class Call:
    """One call of the sweep.

    kind: of the rows. rows: those that it runs, as the report of ops names them.
    make: the arguments of `run`, on the CPU. axes: the sizes that are tried with a
    boundary of another axis; an axis whose name ends with "!" has only these sizes.
    rtol: of float32; atol is the same share of the largest number of a result.
    work: of sizes, about the number of operations; at most `most` of them.
    takes_out: whether `run` takes out=. reference: the CPU's result in float64; the one
    in the call's own dtype, where a rounded coordinate selects elements; or that of
    PyTorch's kernel on xpu, which draws the same random numbers.
    """

    name: str
    kind: str
    make: Make
    run: Callable[..., Any]
    axes: Mapping[str, tuple[int, ...]]
    rows: tuple[str, ...]
    rtol: float = 2e-5
    dtypes: tuple[str, ...] = ("float32",)
    most: int = 1 << 20
    work: Callable[[Case], int] | None = None
    takes_out: bool = False
    reference: Literal["wide", "same", "native"] = "wide"
    layouts: Sequence[str] = tuple(LAYOUTS)
    compiled: bool = False
    most_size: int = 10_000_000

    def arguments(self, case: Case, dtype: torch.dtype) -> tuple[Any, ...]:
        return self.make(Operands(case.layout, dtype, case.seed, case.seed % 3), case)

    def work_of(self, case: Case) -> int:
        return math.prod(case.sizes.values()) if self.work is None else self.work(case)

    def fits(self, case: Case) -> bool:
        """Whether it is not too much work. One of 16 cases may be ten times as much."""
        return self.work_of(case) <= self.most * (10 if case.seed % 16 == 0 else 1)

    @property
    def free_axes(self) -> list[str]:
        return [axis for axis in self.axes if not axis.endswith("!")]

    def around(self, axis: str, size: int, draw: random.Random) -> Case | None:
        """A case with this size of the axis, and drawn ones of the others; None if it
        would be too much work."""
        if size > self.most_size:
            return None
        for _ in range(8):
            chosen = {
                other.rstrip("!"): size if other == axis else draw.choice(few)
                for other, few in self.axes.items()
            }
            layout, parts = draw.choice(self.layouts), draw.choice((1, 1, 2, 3))
            case = Case(chosen, layout, parts, draw.randrange(1 << 30))
            if self.fits(case):
                return case
        few_of = {
            other.rstrip("!"): size if other == axis else min(few)
            for other, few in self.axes.items()
        }
        case = Case(few_of, draw.choice(self.layouts), 1, draw.randrange(1 << 30))
        return case if self.fits(case) else None


# How many cases each size has, by the number of the axis: more of the first, which is
# the one that kernels loop over.
REPEATS = (4, 2, 2, 1)


def whole(call: Call, of: tuple[int, ...]) -> Iterator[Case]:
    """Every size along every axis, with other sizes along the others."""
    draw = random.Random(zlib.crc32(call.name.encode()))
    for number, axis in enumerate(call.free_axes):
        for size in sizes(of):
            for _ in range(REPEATS[min(number, len(REPEATS) - 1)]):
                case = call.around(axis, size, draw)
                if case is not None:
                    yield case


def with_gradients(
    run: Callable[..., Any], *wanted: int
) -> Callable[..., tuple[Tensor, ...]]:
    """`run`, then the gradients of its arguments of these numbers; without any, of the
    first one."""
    numbers = wanted or (0,)

    def both(*inputs: Any) -> tuple[Tensor, ...]:
        given = [
            each.detach().requires_grad_() if number in numbers else each
            for number, each in enumerate(inputs)
        ]
        made = run(*given)
        count = made.numel()
        sent = (torch.arange(count, dtype=made.dtype) % 5 - 1).view(made.shape)
        leaves = [given[number] for number in numbers]
        return (made, *torch.autograd.grad(made, leaves, sent.to(made.device)))

    return both
