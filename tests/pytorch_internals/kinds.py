"""The kinds of rows in the table of PyTorch's internals."""

from collections.abc import Mapping
from dataclasses import dataclass

Expects = str | Mapping[str, str]
"""The names of a function's parameters, as in "(self, event)", or the type that a value
has; "" if it is enough that it is there. Where versions of PyTorch differ: that by the
first series that has it, as in {"2.13": "()", "2.15": "(device)"}."""


def of_series(expects: Expects, series: str) -> str:
    """What is expected of a series, "2.14"."""
    if isinstance(expects, str):
        return expects
    number = _number(series)
    return [each for first, each in expects.items() if _number(first) <= number][-1]


def _number(series: str) -> tuple[int, ...]:
    return tuple(map(int, series.split(".")))


@dataclass(frozen=True, slots=True)
class Member:
    """A private Python name."""

    name: str
    expects: Expects
    why: str


@dataclass(frozen=True, slots=True)
class Patch:
    """What xpurt sets, replaces or removes in another package. `targets`: as the sources
    write it. `members`: what has to be there for that, with parameters as in `Member`;
    an attribute of a class where there is a ":"."""

    targets: tuple[str, ...]
    members: tuple[tuple[str, Expects], ...]
    why: str


@dataclass(frozen=True, slots=True)
class Native:
    """A C++ name, inner header (`<...>`) or private member (`&Class::member_`).

    `header`: where it is declared, below torch/include; "" for headers themselves.
    """

    name: str
    header: str
    why: str


@dataclass(frozen=True, slots=True)
class Key:
    """A dispatch key that xpurt registers kernels on. `name`: `_ XPU` for a fallback.
    `empty`: PyTorch itself has no kernel there."""

    name: str
    empty: bool
    why: str
