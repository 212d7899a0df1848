"""The kinds of rows in the table of PyTorch's internals."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Member:
    """A private Python name. `expects`: the names of a function's parameters, as in
    "(self, event)", or the type that the value has; "" if it is enough that it is there.
    """

    name: str
    expects: str
    why: str


@dataclass(frozen=True, slots=True)
class Patch:
    """What xpurt sets, replaces or removes in another package. `targets`: as the sources
    write it. `members`: what has to be there for that, with parameters as in `Member`;
    an attribute of a class where there is a ":"."""

    targets: tuple[str, ...]
    members: tuple[tuple[str, str], ...]
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
