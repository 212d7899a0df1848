"""What the sweep needs to know of the tested device: constants of its own, and whether
several devices divide an op."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from xpurt import _C
from xpurt.kernels import fail, make_source
from xpurt.testing import outcome
from xpurt_tools.conformance.inputs import moved
from xpurt_tools.conformance.record import Record
from xpurt_tools.conformance.sweeps.shapes_cases import Call, Case
from xpurt_tools.conformance.sweeps.shapes_constants import LEAST, numbers_in
from xpurt_tools.conformance.tested_device import tested_device

# Properties of a device that its kernels loop by; the others are limits.
TRAITS = ("sub_group", "vector_width")
PROPORTIONS = (0.6, 0.4)


@cache
def _heard() -> set[int]:
    """The numbers in the keys of kernels that this process requests from now on: blocks
    and tiles of matrix products, and lanes."""
    numbers: set[int] = set()

    def heard(key: str, device: Mapping[str, Any]) -> tuple[str, str]:
        _, template, *fields = key.split(";")
        if template.startswith("matmul"):
            numbers.update(numbers_in(fields[0].replace(",", " , ")))
        numbers.update(each for trait in TRAITS if (each := device[trait]) >= LEAST)
        return make_source(key, device)  # type: ignore[arg-type]

    _C.set_source_callbacks(heard, fail)
    return numbers


def constants(call: Call) -> list[int]:
    """Those of the device, as far as the kernels of this call ask for them."""
    numbers = _heard()
    few = {axis.rstrip("!"): min(sizes) for axis, sizes in call.axes.items()}
    inputs = call.arguments(Case(few), getattr(torch, call.dtypes[0]))
    outcome(lambda given: call.run(*given), moved(inputs, tested_device()))
    return sorted(numbers)


@contextmanager
def divided(index: int, record: Record) -> Iterator[None]:
    """Divides every other case among the devices of the ordinal, if it has several."""
    before = _C.testing.shards_run(tested_device().index)
    if len(before) < 2 or index % 2:
        yield
        return
    others = (0.0,) * (len(before) - 2)
    _C.testing.set_split_proportions((*PROPORTIONS, *others))
    try:
        yield
    finally:
        _C.testing.set_split_proportions([])
        after = _C.testing.shards_run(tested_device().index)
        record.tiers.calls["divided"] += after != before
