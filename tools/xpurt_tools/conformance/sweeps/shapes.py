"""Every kind of row at every size at which its kernels change what they do.

A call is run with operands of many sizes and layouts, and compared with the CPU in
float64. The sizes are those next to each number of the generators: see Note [Constants of
the generators]. Operands and results lie between fences (shapes_operands.py), and a new
result begins as NaN, so that an element that no work-item writes is seen.
"""

import random
import zlib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

import xpurt
from xpurt.testing import Disagreement, outcome
from xpurt_tools.conformance.inputs import moved
from xpurt_tools.conformance.pairs import Pair
from xpurt_tools.conformance.record import Record
from xpurt_tools.conformance.settings import Settings
from xpurt_tools.conformance.sweeps import shapes_device
from xpurt_tools.conformance.sweeps.shapes_calls import CALLS
from xpurt_tools.conformance.sweeps.shapes_cases import Call, Case, whole
from xpurt_tools.conformance.sweeps.shapes_constants import constants
from xpurt_tools.conformance.sweeps.shapes_operands import canary, is_intact, widened
from xpurt_tools.conformance.tested_device import tested_device
from xpurt_tools.conformance.trial import Verdict

RTOL_OF = {"float64": 1e-9, "float16": 4e-3, "bfloat16": 3e-2}
# Of the operands: numbers that cancel each other leave a result as small as this.
ROUNDING = 2.0**-24


def calls(settings: Settings) -> Iterator[tuple[Call, str]]:
    for call in CALLS:
        named = any(fnmatchcase(call.name, pattern) for pattern in settings.ops)
        if not named or call.compiled != settings.compiled:
            continue
        for dtype in call.dtypes:
            if not settings.dtypes or dtype in settings.dtypes:
                yield call, dtype


def pairs(settings: Settings) -> list[Pair]:
    """A call and a dtype each. `--sample` leaves out cases, not pairs."""
    constants()
    return [Pair(call.name, dtype, call.kind) for call, dtype in calls(settings)]


def check(pair: Pair, record: Record, settings: Settings) -> None:
    """Runs one of `settings.sample` cases of the pair, in an order of their own."""
    (call,) = (each for each in CALLS if each.name == pair.name)
    dtype = getattr(torch, pair.dtype)
    cases = list(whole(call, (*constants(), *shapes_device.constants(call))))
    random.Random(zlib.crc32(pair.name.encode())).shuffle(cases)
    for index, case in enumerate(cases[:: settings.sample]):
        run_case(call, case, dtype, record, index)
    if not record.result().trials.get("values"):
        record.failed("call", -1, None, "no case of this call runs on the CPU")
    if settings.policy == "sycl" or settings.mapping == "GPU":
        _expect_kernels(call, record)


def _expect_kernels(call: Call, record: Record) -> None:
    """A call that runs no kernel is a comparison of the CPU with itself."""
    ran = {op.rstrip("_") for op in record.tiers.on_kernels}
    idle = sorted(row for row in call.rows if row.rstrip("_") not in ran)
    if idle:
        record.failed("rows", -1, None, f"no kernel ran for {', '.join(idle)}")


def run_case(
    call: Call, case: Case, dtype: torch.dtype, record: Record, index: int = 0
) -> None:
    """Runs one case; a difference is a failure of the record."""
    record.attempt(
        "call", index, str(case), lambda: trial(call, case, dtype, record, index)
    )


def trial(
    call: Call, case: Case, dtype: torch.dtype, record: Record, index: int
) -> Verdict:
    inputs = call.arguments(case, dtype)
    there = moved(inputs, tested_device())
    if call.reference == "native":
        with xpurt.kernel_policy("native"):
            expected, error = outcome(_seeded, (call, moved(inputs, tested_device())))
        expected = _on_cpu(expected)
    else:
        given = widened(inputs) if call.reference == "wide" else inputs
        expected, error = outcome(lambda given: call.run(*given), given)
        if not call.rtol:  # exact, but for the rounding of the result
            expected = _rounded(expected, dtype)
    if error is not None:
        # A size that the op refuses.
        if outcome(lambda given: call.run(*given), there)[1] is None:
            raise Disagreement(f"no error; the CPU raises {error}")
        return "raised"
    named: dict[str, Any] = {}
    guards = []
    if call.takes_out and index % 2:
        assert expected is not None
        named["out"], guard = canary(expected.to(dtype), tested_device())
        guards.append(guard)
    _spoil_free_memory(expected, dtype)
    with record.tiers.seen(), shapes_device.divided(index, record):
        if call.reference == "native":
            torch.manual_seed(0)
        actual = _on_cpu(call.run(*there, **named))
        torch.xpu.synchronize()
    least = ROUNDING * max(map(_size, tree_leaves(inputs)), default=0.0)
    _compare(call, expected, actual, dtype, least)
    if not all(map(is_intact, guards)):
        raise Disagreement("the kernel writes outside of its result")
    return "values"


def _seeded(given: tuple[Call, Any]) -> Any:
    torch.manual_seed(0)
    return given[0].run(*given[1])


def _on_cpu(tree: Any) -> Any:
    return tree_map(lambda leaf: leaf.cpu() if isinstance(leaf, Tensor) else leaf, tree)


def _rounded(tree: Any, dtype: torch.dtype) -> Any:
    return tree_map(
        lambda leaf: (
            leaf.to(dtype).to(leaf.dtype)
            if isinstance(leaf, Tensor) and leaf.is_floating_point()
            else leaf
        ),
        tree,
    )


def _spoil_free_memory(expected: Any, dtype: torch.dtype) -> None:
    """What the allocator hands out next has NaN in it, not an earlier result."""
    for leaf in tree_leaves(expected):
        if isinstance(leaf, Tensor) and leaf.numel():
            of = dtype if leaf.is_floating_point() else leaf.dtype
            size = leaf.numel() * of.itemsize
            torch.full((size,), 255, dtype=torch.uint8, device=tested_device())


def _compare(
    call: Call, expected: Any, actual: Any, dtype: torch.dtype, least: float
) -> None:
    wanted, found = tree_leaves(expected), tree_leaves(actual)
    if len(wanted) != len(found):
        raise Disagreement(f"{len(found)} results, not {len(wanted)}")
    rtol = call.rtol
    if rtol:
        rtol = max(rtol, RTOL_OF.get(str(dtype).removeprefix("torch."), 0))
    # Of all results: a gradient that is exactly 0 is a sum of numbers as large as others.
    size = max([least, *map(_size, wanted)])
    for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
        if not isinstance(one, Tensor):
            if one != other:
                raise Disagreement(f"result {number}: {other}, not {one}")
            continue
        if one.shape != other.shape:
            raise Disagreement(
                f"result {number} has the shape {tuple(other.shape)}, not "
                f"{tuple(one.shape)}"
            )
        _compare_values(f"result {number}", one, other.to(one.dtype), rtol, size)


def _size(result: Any) -> float:
    """The largest number of a result."""
    if not isinstance(result, Tensor):
        return 0.0
    if not (result.is_floating_point() or result.is_complex()):
        return 0.0
    finite = result.detach()[result.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


def _compare_values(
    name: str, one: Tensor, other: Tensor, rtol: float, size: float
) -> None:
    if torch.equal(one, other):
        return
    if not (one.is_floating_point() or one.is_complex()):
        wrong = one != other
    else:
        close = (one - other).abs() <= rtol * (one.abs() + size)
        wrong = ~(close | (one == other) | (one.isnan() & other.isnan()))
    if wrong.any():
        first = tuple(int(i) for i in wrong.nonzero()[0])
        raise Disagreement(
            f"{name}: {int(wrong.sum()):,} of {one.numel():,} differ; the first one at "
            f"{first} is {other[first].item()}, not {one[first].item()}"
        )
