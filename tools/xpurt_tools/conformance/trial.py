"""Runs a function on the CPU and on the tested device, and compares the results."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, TypeVar

import torch
from torch.utils._pytree import tree_leaves

from xpurt.testing import Comparison, Disagreement, compare_errors, outcome
from xpurt_tools.conformance.gpu_types import Oracle
from xpurt_tools.conformance.tested_device import (
    has_layouts,
    is_of_earlier_work,
    tested_device,
    wait,
)
from xpurt_tools.conformance.tiers import Tiers
from xpurt_tools.conformance.ties import in_stable_order
from xpurt_tools.conformance.tolerance import Tolerance
from xpurt_tools.conformance.widening import agrees_in_wider_type

T = TypeVar("T")

CPU = torch.device("cpu")

OTHER_SEEDS = range(1, 11)

_INTERNAL_WORDS = ("INTERNAL ASSERT", "Could not run", "object has no attribute")

Verdict = Literal["values", "wider", "random", "uninitialized", "raised", "stock"]


def trial(
    prepare: Callable[[torch.device], T],
    body: Callable[[T], Any],
    tolerance: Tolerance,
    tiers: Tiers,
    *,
    uninitialized: bool = False,
    placed: bool = True,
    oracle: Oracle[T] = outcome,
    exactly: bool = False,
) -> Verdict:
    """Runs `body` with the inputs of `prepare` on each device; compares the results.

    prepare: makes new inputs on a device, the same at every call.
    body: returns a tree of results to compare; its tensors have to be on the device,
        unless `placed` is False.
    uninitialized: the values are undefined memory, and are not compared.
    oracle: calls `body` on the CPU, if need be differently from xpu.
    exactly: strides of empty tensors are compared, too, and an error that says less than
        the CPU's is a disagreement.

    Returns what was compared. "values": the values agree. "wider": they differ from the
    CPU's, but are as right by the CPU's result in a wider type. "random": the CPU's
    result depends on the seed. The devices draw different numbers, so only dtypes,
    shapes, strides and devices are compared, and xpu has to repeat its result after the
    same seed. "raised": the CPU raised an exception, and xpu raised it, too. "stock":
    the CPU has no kernel for complex32, and xpu has. Raises Disagreement.
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
    actual, actual_error = _on_tested_device(prepare, body, tiers)
    if error is not None:
        late = _raised_at_the_wait()
        if _is_late(actual_error or late):
            return "raised"
        if (
            not has_layouts()
        ):  # a lazy op raises what only its kernel finds when it runs
            actual_error = actual_error or late
    if exactly and _both_out_of_memory(error, actual_error):
        return "raised"
    if exactly and actual_error is None and _lacks_complex32(error):
        return "stock"
    compare_errors(error, actual_error, tested_device())
    if error is not None and actual_error is not None:
        if exactly:
            compare_words(error, actual_error)
        return "raised"

    def compare(values: bool, expected: Any = expected) -> None:
        place = tested_device().type if placed else None
        compared = Comparison(
            tolerance.rtol,
            tolerance.atol,
            values=values,
            strides=has_layouts(),
            empty_strides=exactly,
            device_type=place,
        )
        compared("", expected, actual)

    if not (random or uninitialized):
        try:
            compare(values=True)
        except Disagreement:
            compare(values=False)
            stable, _ = in_stable_order(lambda: oracle(body, prepare(CPU)))
            with suppress(Disagreement):
                compare(values=True, expected=stable)
                return "values"
            if not agrees_in_wider_type(
                prepare(CPU), body, expected, actual, tolerance
            ):
                raise
            return "wider"
        return "values"
    compare(values=False)
    if random:
        again, again_error = _on_tested_device(prepare, body, tiers)
        compare_errors(None, again_error, tested_device())
        _repeats(actual, again)
        return "random"
    return "uninitialized"


def _both_out_of_memory(expected: Exception | None, actual: Exception | None) -> bool:
    """The CPU's allocator raises RuntimeError, those of devices a type of its own."""
    return "DefaultCPUAllocator" in str(expected) and isinstance(
        actual, torch.OutOfMemoryError
    )


def _lacks_complex32(error: Exception | None) -> bool:
    """Whether a CPU kernel is missing for the type that a complex number makes of
    float16. Other types that the CPU refuses are refused on xpu, too."""
    return isinstance(error, NotImplementedError) and "'ComplexHalf'" in str(error)


def compare_words(expected: Exception, actual: Exception) -> None:
    """Raises Disagreement if a failure inside of PyTorch or xpurt is reported where the
    CPU names the fault of the call."""
    for words in _INTERNAL_WORDS:
        if words in str(actual) and words not in str(expected):
            raise Disagreement(
                f"the CPU raised {type(expected).__name__} ({expected}), "
                f"{tested_device()} reports an internal failure ({actual})"
            )


def _on_tested_device(
    prepare: Callable[[torch.device], T], body: Callable[[T], Any], tiers: Tiers
) -> tuple[Any, Exception | None]:
    inputs = prepare(tested_device())
    torch.manual_seed(0)
    with tiers.seen():
        return outcome(body, inputs)


def _raised_at_the_wait() -> Exception | None:
    error = outcome(wait)[1]
    if error is not None:  # lazy tensors raise it once more at the next wait
        outcome(wait)
    return error


def _is_late(error: Exception | None) -> bool:
    """Whether an error is of a kernel that found a wrong index. It is raised as
    IndexError for every op, at the next wait."""
    return isinstance(error, IndexError) and is_of_earlier_work(error)


def _states(inputs: Any) -> list[bytes]:
    """The states of the CPU generators from which a call can draw."""
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
    """Whether the result changes with the seed. An op may draw numbers for its method,
    as randomized linear algebra does, and still have one result. Several seeds are
    tried: a choice among few values can be the same for two of them."""
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
            f"{tested_device().type} does not repeat itself after the same seed: {difference}"
        ) from None
