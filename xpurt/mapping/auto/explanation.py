"""The devices that the ops of one call ran on, and the reasons."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from xpurt import _C
from xpurt.arguments import check_callable
from xpurt.text.table import table


@dataclass(frozen=True, slots=True)
class Way:
    """A candidate for an op, as predicted. Microseconds from the decision on.

    tier: "native" (PyTorch's CPU kernel) or "kernel" (a kernel or a oneDNN primitive).
    free_us: until its queue has done the work submitted before.
    moves_us: copies of operands that are not valid on the device.
    cost_us: the work itself; infinite if it can't run, or is not worth a trial yet.
    finish_us: until the op is done.
    """

    device: str
    tier: str
    free_us: float
    moves_us: float
    cost_us: float
    finish_us: float

    def __str__(self) -> str:
        if math.isinf(self.cost_us):
            return f"{self.device} {self.tier}: not possible"
        waits = f"{self.free_us:,.0f} queue + " if self.free_us >= 0.5 else ""
        moves = f"{self.moves_us:,.0f} copies + " if self.moves_us >= 0.5 else ""
        return (
            f"{self.device} {self.tier}: {self.finish_us:,.0f} us "
            f"({waits}{moves}{self.cost_us:,.0f} work)"
        )


@dataclass(frozen=True, slots=True)
class ExplainedOp:
    """One op of the call. `ways`: the candidates; empty if there was no choice."""

    op: str
    device: str
    tier: str
    why: str
    ways: tuple[Way, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The ops in the order in which they ended; ``str()`` of it is a table.

    result: what the call returned.
    """

    rows: tuple[ExplainedOp, ...]
    result: Any

    def __iter__(self) -> Iterator[ExplainedOp]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        cells = (
            (
                row.op,
                row.tier,
                row.device,
                row.why,
                "; ".join(str(way) for way in _possible(row)),
            )
            for row in self.rows
        )
        return table(("op", "tier", "device", "why", "predicted"), cells)


def _possible(row: ExplainedOp) -> list[Way]:
    possible = [way for way in row.ways if math.isfinite(way.cost_us)]
    return sorted(possible, key=lambda way: way.finish_us)


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Calls the function, prints the device of each op on xpu and the reason, and
    returns the explanation.

    Ops of other threads are included, so that a backward is explained. Calls of
    `explain` inside of the function are explained twice. Raises what the function
    raises, and TypeError if it can't be called.
    """
    check_callable("explain()", function)
    begin = _C.begin_explaining()
    try:
        result = function(*args, **kwargs)
    finally:
        found = _C.end_explaining(begin)
    rows = tuple(
        ExplainedOp(
            op,
            device,
            tier,
            why,
            tuple(
                Way(name, "native" if native else "kernel", *times)
                for name, native, *times in ways
            ),
        )
        for op, device, tier, why, ways in found
    )
    explanation = Explanation(rows, result)
    print(explanation)
    return explanation
