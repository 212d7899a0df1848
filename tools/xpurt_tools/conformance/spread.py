"""A selection of samples, spread over all of them."""

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

_LOOKED_AT = 10_000  # samples are made one by one, and some ops have very many


def spread(samples: Iterable[T], most: int | None) -> Iterable[tuple[int, T]]:
    """`samples` with their positions; at most `most` of them, evenly spread, with the
    first one."""
    if most is None:
        return enumerate(samples)
    there = list(islice(enumerate(samples), _LOOKED_AT))
    if len(there) <= most:
        return there
    return [there[position * len(there) // most] for position in range(most)]
