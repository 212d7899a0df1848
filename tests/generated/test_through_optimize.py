"""Generated programs through `xpurt.optimize`: the values and side effects of eager mode."""

import copy
import os
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from programs import after, hooked, made, outside, programs, state_of

import xpurt
from xpurt.optimization.comparison import difference_of, optimized

# Of the slow test, which draws others in each run.
COUNT = int(os.environ.get("GENERATED_PROGRAMS", "300"))

SCALE = 8.0  # sums of terms of about 1

Program = tuple[list[str], list[tuple[str, int, bool]]]


def outcome(module: Any, *given: Any) -> Any:
    """The result and the state after a call, or the type of what it raised."""
    torch.manual_seed(1)
    try:
        with torch.no_grad():
            return module(*given), state_of(module)
    except Exception as error:
        return type(error).__name__


def exact(module: Any, *given: torch.Tensor) -> Any:
    return outcome(copy.deepcopy(module).double(), *(each.double() for each in given))


def check(program: Program, device: str) -> None:
    steps, calls = program
    reference = made(steps).to(device)
    optimized_model: Any = xpurt.optimize(reference)
    for event, batch, has_extra in calls:
        number = outside()
        reference = after(event, reference, number)
        optimized_model = after(event, optimized_model, number)
        x = torch.randn(batch, 6).to(device)
        given = (x, torch.ones(1, 5 if "keep a view" in steps else 6, device=device))
        given = given if has_extra else given[:1]
        with hooked(event):
            wide = exact(reference, *given)
            expected = outcome(reference, *given)
            with optimized():
                found = outcome(optimized_model, *given)
        why = difference_of(expected, found, wide, SCALE)
        assert why is None, f"{why} after {event!r}\n{optimized_model.report}"


@pytest.mark.parametrize("device", ["cpu", "xpu"])
@pytest.mark.parametrize("count", [12, pytest.param(COUNT, marks=pytest.mark.slow)])
def test_programs(count: int, device: str) -> None:
    @settings(
        max_examples=count,
        deadline=None,
        derandomize=count == 12,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def run(program: Program) -> None:
        check(program, device)

    run()
