"""The devices that the ops of one call ran on, and the reasons."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from xpurt import _C
from xpurt.arguments import check_callable
from xpurt.mapping.auto.explained_graphs import ExplainedGraph, explained_graphs
from xpurt.text.notebook import ShownInNotebooks
from xpurt.text.table import table


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate for an op, as predicted. Microseconds from the decision on.

    tier: "native" (PyTorch's CPU kernel) or "kernel" (a kernel or a oneDNN primitive).
    free_us: until its queue has done the work submitted before.
    moves_us: copies of operands that are not valid on the device.
    cost_us: the work itself; infinite if it can't run.
    finish_us: until the op is done.
    is_held_back: its trial would cost more than what was lost without it so far.
    samples: timed calls on which its cost is based; 0: it is an expectation.
    timed_us: what these took without copies; 0 if there are none.
    """

    device: str
    tier: str
    free_us: float
    moves_us: float
    cost_us: float
    finish_us: float
    is_held_back: bool
    samples: int
    timed_us: float

    @property
    def is_possible(self) -> bool:
        return math.isfinite(self.cost_us)

    def __str__(self) -> str:
        if not self.is_possible:
            return f"{self.device} {self.tier}: not possible"
        waits = f"{self.free_us:,.0f} queue + " if self.free_us >= 0.5 else ""
        moves = f"{self.moves_us:,.0f} copies + " if self.moves_us >= 0.5 else ""
        return (
            f"{self.device} {self.tier}: {self.finish_us:,.0f} us "
            f"({waits}{moves}{self.cost_us:,.0f} work)"
        )

    @property
    def name(self) -> str:
        """The kernel and the device, as in "the kernel on CPU"."""
        kernel = "PyTorch's CPU kernel" if self.tier == "native" else "the kernel"
        return f"{kernel} on {self.device}"


@dataclass(frozen=True, slots=True)
class ExplainedOp:
    """One op of the call.

    why: the reason for the device and the tier.
    measured_us: the time of a call of PyTorch's CPU kernel, with the wait for its
        operands; None for a kernel on a queue, which runs on after its call.
    candidates: empty if there was no choice.
    """

    op: str
    device: str
    tier: str
    why: str
    measured_us: float | None
    candidates: tuple[Candidate, ...]

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that ran the op; None without a choice."""
        by_native = self.tier in ("native", "copy")
        for each in self.candidates:
            if each.device == self.device and (each.tier == "native") == by_native:
                return each
        return None

    @property
    def sentence(self) -> str:
        """What was expected, what came, and why the other candidates were not taken."""
        chosen = self.chosen
        took = "" if self.measured_us is None else f", and took {_us(self.measured_us)}"
        if chosen is None:
            return f"{self.op} ran on {self.device} ({self.tier}{took}): {self.why}."
        expected = (
            f"{chosen.name} was expected to end after {_us(chosen.finish_us)}"
            if chosen.is_possible
            else f"{chosen.name} ran it"
        )
        others = [
            f"{each.name} {_why_not(each)}"
            for each in self.candidates
            if each is not chosen
        ]
        rest = "".join(f"; {each}" for each in others)
        return f"{self.op} ({self.why}): {expected}{took or _timed(chosen)}{rest}."


def _us(time: float) -> str:
    return f"{time:,.0f} us"


def _timed(candidate: Candidate) -> str:
    if not candidate.timed_us:
        return ", and none of its calls was timed yet"
    return f", and its timed calls took {_us(candidate.timed_us)}"


def _why_not(candidate: Candidate) -> str:
    if not candidate.is_possible:
        return "can't run it, is being built, or takes no part in the program"
    expected = f"was expected to end after {_us(candidate.finish_us)}"
    if candidate.is_held_back:
        return f"{expected}, and a trial costs more than was lost without it so far"
    return expected if candidate.samples else f"{expected}, and was never timed"


@dataclass(frozen=True, slots=True)
class Explanation(ShownInNotebooks):
    """The ops in the order in which they ended; ``str()`` of it is a table, and a
    sentence per op.

    result: what the call returned.
    graphs: the compiled graphs that are measured in two forms.
    """

    rows: tuple[ExplainedOp, ...]
    result: Any
    graphs: tuple[ExplainedGraph, ...] = ()

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
                "; ".join(str(each) for each in _possible(row)),
            )
            for row in self.rows
        )
        shown = table(("op", "tier", "device", "why", "predicted"), cells)
        sentences = (*self.sentences, *(graph.sentence for graph in self.graphs))
        return "\n".join([shown, *(["", *sentences] if sentences else [])])

    @property
    def sentences(self) -> tuple[str, ...]:
        """A sentence per op; equal ones that follow each other are one, with a count."""
        return tuple(
            sentence if count == 1 else f"{count} times: {sentence}"
            for sentence, count in (
                (sentence, sum(1 for _ in equal))
                for sentence, equal in groupby(row.sentence for row in self.rows)
            )
        )


def _possible(row: ExplainedOp) -> list[Candidate]:
    possible = [each for each in row.candidates if each.is_possible]
    return sorted(possible, key=lambda each: each.finish_us)


def _candidate(
    row: tuple[str, bool, float, float, float, float, bool, int, float],
) -> Candidate:
    name, native, free_us, moves_us, cost_us, finish_us, held_back, samples, timed = row
    tier = "native" if native else "kernel"
    return Candidate(
        name, tier, free_us, moves_us, cost_us, finish_us, held_back, samples, timed
    )


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
        with explained_graphs() as graphs:
            result = function(*args, **kwargs)
    finally:
        found = _C.end_explaining(begin)
    rows = tuple(
        ExplainedOp(
            op,
            device,
            tier,
            why,
            measured_us or None,
            tuple(_candidate(each) for each in candidates),
        )
        for op, device, tier, why, measured_us, candidates in found
    )
    explanation = Explanation(rows, result, tuple(graphs))
    print(explanation)
    return explanation
