"""A range in two parts: quotients and remainders of indices without divisions.

Note [Ranges in two parts]
~~~~~~~~~~~~~~~~~~~~~~~~~~
Inductor has one index for adjacent dimensions, and takes an index of a dimension from it
by a quotient and a remainder: a channel of an image is x / 3136 % 64. A driver for a CPU
divides per lane, and loads what has that index by a gather, although all lanes of a
vector have the same channel. So the range is launched as two dimensions, if all its
divisors are multiples of the smallest one: x = outer * 3136 + inner. The channel
is outer % 64 then, a number of the work-group. Loops over reduced elements are two nested
ones by the same rule.

Measured by processor time of one thread on a CPU device (AMD Zen 4, 2026-11-24, beside
other programs, minimum of five to seven), milliseconds before, after, and of Inductor's
code for the CPU: batch norm with ReLU and addition of (8, 64, 56, 56) 4.3, 1.5, 0.7; batch
norm in training 9.1, 1.8, 1.8; GELU of a sum with a row, (4096, 1024), 7.1, 6.9, 3.6, which
is bound by erf.

Rejected: Inductor's own tiling in two dimensions. It is one of loads that are transposed,
and divides no range by a dimension along which operands are broadcast.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sympy

# A shorter inner part leaves lanes without work.
_LEAST = 32
_MOST_ELEMENTS = 1 << 31


@dataclass(frozen=True, slots=True)
class Parts:
    """index = outer * inner_size + inner."""

    prefix: str
    inner_size: int
    outer_size: int

    @property
    def inner(self) -> str:
        return f"{self.prefix}inner"

    @property
    def outer(self) -> str:
        return f"{self.prefix}outer"

    def index_of(self, entry: Any) -> str:
        """The text of an entry's index."""
        divisor, length = int(entry.divisor), int(entry.length)
        whole = divisor * length == self.inner_size * self.outer_size
        if divisor >= self.inner_size:
            found = _quotient(self.outer, divisor // self.inner_size)
            return found if whole else _rest(found, length)
        if whole:
            return f"{self.outer} * {self.inner_size} + {self.inner}"
        found = _rest(self.outer, length // self.inner_size)
        return f"{found} * {self.inner_size} + {self.inner}"


def _quotient(text: str, divisor: int) -> str:
    return text if divisor == 1 else f"((uint)({text}) / {divisor}u)"


def _rest(text: str, divisor: int) -> str:
    return "0" if divisor == 1 else f"((uint)({text}) % {divisor}u)"


def parts_of(tree: Any, entries: Iterable[Any], least: int = _LEAST) -> Parts | None:
    """The two parts of a range whose indices are `entries`; None if it is one."""
    if not isinstance(tree.numel, sympy.Integer) or int(tree.numel) >= _MOST_ELEMENTS:
        return None
    numel = int(tree.numel)
    divisors = []
    for entry in entries:
        sizes = (entry.divisor, entry.length)
        if not all(isinstance(size, sympy.Integer) for size in sizes):
            return None
        divisor, length = map(int, sizes)
        # Where an index begins, and where it begins anew.
        divisors += [each for each in (divisor, divisor * length) if each != 1]
    divisors = [each for each in divisors if each < numel]
    if not divisors:
        return None
    inner = min(divisors)
    if inner < least or any(each % inner for each in [*divisors, numel]):
        return None
    return Parts(tree.prefix, inner, numel // inner)
