"""Inputs of our own: what PyTorch's databases leave out, op by op."""

from collections.abc import Mapping
from typing import Protocol

from xpurt.conformance.pairs import Pair
from xpurt.conformance.record import Record
from xpurt.conformance.settings import Settings


class Sweep(Protocol):
    """A module with these functions. `check` runs in a worker, which a crash ends."""

    def pairs(self, settings: Settings) -> list[Pair]: ...

    def check(self, pair: Pair, record: Record, settings: Settings) -> None: ...


SWEEPS: Mapping[str, Sweep] = {}
