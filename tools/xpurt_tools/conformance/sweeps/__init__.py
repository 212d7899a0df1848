"""Inputs of our own: what PyTorch's databases leave out, op by op."""

from collections.abc import Mapping
from typing import Protocol

from xpurt_tools.conformance.pairs import Pair
from xpurt_tools.conformance.record import Record
from xpurt_tools.conformance.settings import Settings
from xpurt_tools.conformance.sweeps import shapes
from xpurt_tools.conformance.sweeps.arguments import Arguments
from xpurt_tools.conformance.sweeps.dtypes import Dtypes
from xpurt_tools.conformance.sweeps.empties import Empties


class Sweep(Protocol):
    """A module or an object with these functions. `check` runs in a worker, which a crash
    ends; the other trials of the pair then run in the next worker."""

    def pairs(self, settings: Settings) -> list[Pair]: ...

    def check(self, pair: Pair, record: Record, settings: Settings) -> None: ...


SWEEPS: Mapping[str, Sweep] = {
    "arguments": Arguments(),
    "dtypes": Dtypes(),
    "empties": Empties(),
    "shapes": shapes,
}
