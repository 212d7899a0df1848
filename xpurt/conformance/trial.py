"""One body of code, run on the CPU and on xpu, and what both gave compared."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import torch
from torch.utils._pytree import tree_leaves

from xpurt.conformance.gpu_types import Oracle
from xpurt.conformance.tiers import Tiers
from xpurt.conformance.tolerance import Tolerance
from xpurt.conformance.widening import agrees_in_wider_type
from xpurt.testing import Comparison, Disagreement, compare_errors, outcome

T = TypeVar("T")

CPU = torch.device("cpu")
XPU = torch.device("xpu", 0)

OTHER_SEEDS = range(1, 11)

Verdict = Literal["values", "wider", "random", "uninitialized", "raised"]


def trial(
    prepare: Callable[[torch.device], T],
    body: Callable[[T], Any],
    tolerance: Tolerance,
    tiers: Tiers,
    *,
    uninitialized: bool = False,
    placed: bool = True,
    oracle: Oracle[T] = outcome,
) -> Verdict:
    """Run `body` with what `prepare` makes for each device, and compare the results.

    prepare: fresh inputs on a device, the same at every call.
    body: returns a tree of what is compared; its tensors have to be on the device,
        unless `placed` is off.
    uninitialized: the values are whatever was in memory, and do not count.
    oracle: calls `body` on the CPU, in another way than on xpu if it has to.

    What is compared: "values"; "wider", if they are not near to the CPU's, but as
    right as those by what the CPU gives in a wider type; or "random", if the CPU's
    result depends on the seed. The devices draw their own numbers, so dtypes, shapes,
    strides and places are compared there, and that xpu repeats itself after the same
    seed. "raised" is an exception on the CPU, which xpu has to raise too. Raises
    Disagreement.
    """
    torch.manual_seed(0)
    inputs = prepare(CPU)
    before = _states(inputs)
    expected, error = oracle(body, inputs)
    random = (
        error is None
        and not uninitialized
        and _states(inputs) != before
        and _depends_on_seed(prepare, body, expected, tolerance, oracle)
    )
    actual, actual_error = _on_xpu(prepare, body, tiers)
    if error is not None and _is_late(actual_error or _raised_at_the_wait()):
        return "raised"
    compare_errors(error, actual_error, XPU)
    if error is not None:
        return "raised"

    def compare(values: bool) -> None:
        place = XPU.type if placed else None
        Comparison(tolerance.rtol, tolerance.atol, values=values, device_type=place)(
            "", expected, actual
        )

    if not (random or uninitialized):
        try:
            compare(values=True)
        except Disagreement:
            compare(values=False)
            if not agrees_in_wider_type(
                prepare(CPU), body, expected, actual, tolerance
            ):
                raise
            return "wider"
        return "values"
    compare(values=False)
    if random:
        again, again_error = _on_xpu(prepare, body, tiers)
        compare_errors(None, again_error, XPU)
        _repeats(actual, again)
        return "random"
    return "uninitialized"


def _on_xpu(
    prepare: Callable[[torch.device], T], body: Callable[[T], Any], tiers: Tiers
) -> tuple[Any, Exception | None]:
    inputs = prepare(XPU)
    torch.manual_seed(0)
    with tiers.seen():
        return outcome(body, inputs)


def _raised_at_the_wait() -> Exception | None:
    return outcome(torch.xpu.synchronize)[1]


def _is_late(error: Exception | None) -> bool:
    """A kernel that finds a wrong index says so later, as IndexError for every op: at
    the next wait, which under AUTO may be that of a call that is timed."""
    return isinstance(error, IndexError) and "submitted earlier" in str(error)


def _states(inputs: Any) -> list[bytes]:
    """The states of the CPU generators that a call can draw from."""
    generators = [
        leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Generator)
    ]
    return [
        generator.get_state().numpy().tobytes()
        for generator in (torch.default_generator, *generators)
    ]


def _depends_on_seed(
    prepare: Callable[[torch.device], T],
    body: Callable[[T], Any],
    expected: Any,
    tolerance: Tolerance,
    oracle: Oracle[T],
) -> bool:
    """An op may draw numbers for its method, as randomized algebra does, and still
    have one result. Where a choice is among few, some seeds give the same."""
    for seed in OTHER_SEEDS:
        inputs = prepare(CPU)
        torch.manual_seed(seed)
        for leaf in tree_leaves(inputs):
            if isinstance(leaf, torch.Generator):
                leaf.manual_seed(leaf.initial_seed() + seed)
        other, error = oracle(body, inputs)
        if error is not None or not tolerance.admits(expected, other):
            return True
    return False


def _repeats(actual: Any, again: Any) -> None:
    def on_cpu(tree: Any) -> list[Any]:
        return [
            leaf.detach().cpu() if isinstance(leaf, torch.Tensor) else leaf
            for leaf in tree_leaves(tree)
        ]

    try:
        Comparison(0.0, 0.0)("", on_cpu(actual), on_cpu(again))
    except Disagreement as difference:
        raise Disagreement(
            f"xpu does not repeat itself after the same seed: {difference}"
        ) from None
