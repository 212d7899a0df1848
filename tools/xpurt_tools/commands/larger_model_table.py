"""The part of `python -m xpurt simulate` about models that do not fit into a GPU."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean

from xpurt.text.markdown_section import head_of, line_of
from xpurt_tools.simulation import (
    LargerModel,
    SimulatedDevice,
    WeightOp,
    fleets,
    run_larger_model,
)

SHARES = {"a quarter": 0.25, "half": 0.5, "0.9": 0.9}
DEVICES = {"GeForce RTX 4090": fleets.RTX_4090, "Arc B580": fleets.ARC_B580}
LAYERS, ROUNDS = 12, 24
# Of a layer of a Llama model with eight billion parameters: [inputs, outputs].
ATTENTION = ((4096, 4096), (4096, 1024), (4096, 1024), (4096, 4096))
FEED_FORWARD = ((4096, 14336), (4096, 14336), (14336, 4096))
EXPERTS, CHOSEN = 8, 2  # as in Mixtral
BFLOAT16, INT4 = 2.0, 0.53  # bytes of a weight, with scales
MOST, MEAN = 1.02, 0.8


def _ops(
    first: int, shapes: Sequence[tuple[int, int]], rows: int, size: float
) -> Iterator[WeightOp]:
    for number, (inputs, outputs) in enumerate(shapes, first):
        weights = inputs * outputs
        yield WeightOp(number, weights * size, 2.0 * rows * weights, rows * outputs * 4)


def dense(rows: int, size: float) -> list[list[WeightOp]]:
    """Calls on so many tokens."""
    shapes = (ATTENTION + FEED_FORWARD) * LAYERS
    return [list(_ops(0, shapes, rows, size))] * ROUNDS


def mixture(rows: int, size: float) -> list[list[WeightOp]]:
    """Calls on so many tokens, for which each layer chooses two of eight experts; some
    of them are chosen more often than others."""
    chooses = random.Random(0)
    often = [1 / (1 + expert) for expert in range(EXPERTS)]
    rounds = []
    for _ in range(ROUNDS):
        ops: list[WeightOp] = []
        for layer in range(LAYERS):
            ops += _ops(1000 * layer, ATTENTION, rows, size)
            for expert in {*chooses.choices(range(EXPERTS), often, k=CHOSEN * rows)}:
                first = 1000 * layer + 10 * (1 + expert)
                ops += _ops(first, FEED_FORWARD, 1, size)
        rounds.append(ops)
    return rounds


WORK: Mapping[str, Callable[[], list[list[WeightOp]]]] = {
    "a token, bfloat16": lambda: dense(1, BFLOAT16),
    "a token, int4": lambda: dense(1, INT4),
    "16 tokens, int4": lambda: dense(16, INT4),
    "a prompt of 512, bfloat16": lambda: dense(512, BFLOAT16),
    "a token of experts, int4": lambda: mixture(1, INT4),
}


@dataclass(frozen=True, slots=True)
class Case:
    work: str
    device: str
    share: str
    outcomes: Mapping[str, LargerModel]  # by policy

    @property
    def over_best(self) -> float:
        """The time under "auto" over that of the CPU alone or of streaming alone."""
        best = min(self.outcomes[each].us for each in ("home", "streaming"))
        return self.outcomes["auto"].us / best

    @property
    def over_first_layers(self) -> float:
        return self.outcomes["auto"].us / self.outcomes["first layers"].us

    @property
    def moved(self) -> float:
        """The weights moved under "auto" over those under "first layers"."""
        there = self.outcomes["first layers"].moved_bytes
        return self.outcomes["auto"].moved_bytes / there if there else 0.0


def cases() -> Iterator[Case]:
    for name, make in WORK.items():
        rounds = make()
        sizes = {op.weight: op.weight_bytes for ops in rounds for op in ops}
        for label, device in DEVICES.items():
            for share, part in SHARES.items():
                small = replace(device, memory_bytes=part * sum(sizes.values()))
                yield Case(name, label, share, _outcomes(rounds, small))


def _outcomes(
    rounds: list[list[WeightOp]], device: SimulatedDevice
) -> dict[str, LargerModel]:
    policies = ("auto", "home", "streaming", "first layers")
    return {
        policy: run_larger_model(rounds, fleets.DESKTOP, device, policy)
        for policy in policies
    }


def larger_model_lines() -> Iterator[str]:
    """The table, and the verdict."""
    found = list(cases())
    yield from head_of(
        [
            "work",
            "GPU",
            "its memory, of the model",
            ">auto, ms",
            ">CPU alone, ms",
            ">streaming alone, ms",
            ">auto/best of these",
            ">auto/first layers",
            ">moved, auto/first layers",
            ">ops at home",
        ]
    )
    for each in found:
        auto = each.outcomes["auto"]
        yield line_of(
            [
                each.work,
                each.device,
                each.share,
                f"{auto.us / 1e3:,.1f}",
                f"{each.outcomes['home'].us / 1e3:,.1f}",
                f"{each.outcomes['streaming'].us / 1e3:,.1f}",
                f"{each.over_best:.2f}",
                f"{each.over_first_layers:.2f}",
                f"{each.moved:.2f}",
                f"{auto.at_home:.0%}",
            ]
        )
    yield ""
    yield _verdict(found)


def _verdict(found: Sequence[Case]) -> str:
    worst = max(each.over_best for each in found)
    mean = geometric_mean(each.over_best for each in found)
    holds = worst <= MOST and mean <= MEAN
    return (
        f"- {'Holds' if holds else 'Does not hold'}: auto takes at most {MOST} of the best "
        f"of CPU alone and streaming alone, and {MEAN} in geometric mean: {worst:.2f} and "
        f"{mean:.2f}."
    )
