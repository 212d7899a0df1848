"""Generated programs through the layers above eager mode: its values, gradients and side
effects."""

import copy
import os
from typing import Any

import pytest
import torch
from drawn_programs import (
    COPY,
    GLOBAL_HOOK,
    after,
    hooked,
    made,
    outside,
    programs,
    state_of,
)
from hypothesis import HealthCheck, given, settings
from torch import Tensor
from torch.utils import _pytree as pytree

import xpurt
from xpurt.optimization.comparison import difference_of
from xpurt_tools.conformance.check_through import ROUNDINGS, in_type_of, rounded_as
from xpurt_tools.conformance.layers_above import LAYERS, Layer

SCALE = 8.0  # sums of terms of about 1

# Of the slow test, which draws others in each run.
COUNT = int(os.environ.get("GENERATED_PROGRAMS", "300"))

Program = tuple[list[str], list[tuple[str, int, bool]]]


def outcome(module: Any, call: Any, trains: bool, *given: Tensor) -> Any:
    """The result, the gradients and the state after a call, or the type of what it
    raised."""
    torch.manual_seed(1)
    module.zero_grad()
    try:
        with torch.set_grad_enabled(trains):
            result = call(*given)
            leaves = [each for each in pytree.tree_leaves(result) if each.requires_grad]
            if leaves:
                torch.stack([each.square().mean() for each in leaves]).sum().backward()
    except Exception as error:
        return type(error).__name__
    found = result, [each.grad for each in module.parameters()], state_of(module)
    return pytree.tree_map_only(Tensor, lambda x: x.detach().clone(), found)


def exact(module: Any, trains: bool, *given: Tensor, draw: int | None = None) -> Any:
    """The outcome in float64. draw: of numbers that differ by a unit in the last place of
    float32, drawn by it."""
    wide = copy.deepcopy(module).double()
    given = tuple(each.double() for each in given)
    if draw is not None:
        signs = torch.Generator().manual_seed(draw)
        with torch.no_grad():
            for each in (*wide.parameters(), *wide.buffers(), *given):
                if each.is_floating_point():
                    each.copy_(rounded_as(torch.float32, each, signs))
    return outcome(wide, wide, trains, *given)


def check(program: Program, layer: Layer, device: str) -> None:
    steps, calls = program
    reference = made(steps).to(device)
    model = copy.deepcopy(reference)
    call = layer.made(model)
    if layer.is_frozen:
        model, reference = call, layer.reference(reference)
    for event, batch, has_extra in calls:
        if layer.is_frozen and event not in (COPY, GLOBAL_HOOK):
            event = "nothing"
        number = outside()
        reference = after(event, reference, number)
        changed = after(event, model, number)
        if changed is not model:  # a copy
            model, call = changed, layer.of(changed)
        x = torch.randn(batch, 6).to(device)
        given = (x, torch.ones(1, 5 if "keep a view" in steps else 6, device=device))
        given = given if has_extra else given[:1]
        with hooked(event):
            wide = exact(reference, layer.trains, *given)
            before = copy.deepcopy(reference)
            expected = outcome(reference, reference, layer.trains, *given)
            with layer.within(device):
                found = outcome(model, call, layer.trains, *given)
        why = difference_of(expected, found, wide, SCALE)
        # A norm of two rows enlarges rounding, of which eager mode may have little.
        for draw in range(ROUNDINGS if why is not None else 0):
            with hooked(event):
                near = exact(before, layer.trains, *given, draw=draw)
            if isinstance(near, tuple):
                near = pytree.tree_map(in_type_of, near, expected)
                why = difference_of(near, found, wide, SCALE) and why
        assert why is None, f"{why} after {event!r}"


def is_right_on_cpu(program: Program, layer: Layer) -> bool:
    try:
        check(program, layer, "cpu")
    except AssertionError:
        return False
    return True


# The form of autocast that changes layouts alone: programs here decide by values, which
# other types round.
FORMS: dict[str, Layer] = {
    "optimize": LAYERS["optimize"][0],
    "quantize": next(each for each in LAYERS["quantize"] if each.form == "dynamic"),
    "compile": LAYERS["compile"][0],
    "lazy": LAYERS["lazy"][0],
    "cpu_kernels": LAYERS["cpu_kernels"][0],
    "autocast": next(each for each in LAYERS["autocast"] if each.form == "float32"),
}


@pytest.mark.parametrize(
    ("name", "device"),
    [
        pytest.param(name, device, marks=[pytest.mark.slow] * (name == "compile"))
        for name, layer in FORMS.items()
        for device in layer.devices
    ],
)
@pytest.mark.parametrize("count", [12, pytest.param(COUNT, marks=pytest.mark.slow)])
def test_programs(count: int, name: str, device: str) -> None:
    @settings(
        # A compiled program takes ten seconds.
        max_examples=count // 10 if name == "compile" else count,
        deadline=None,
        derandomize=count == 12,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def run(program: Program) -> None:
        try:
            check(program, FORMS[name], device)
        except AssertionError:
            if not FORMS[name].of_pytorch or is_right_on_cpu(program, FORMS[name]):
                raise

    # Kernels of CPU tensors run on a device that is the CPU alone.
    with xpurt.xpu_mapping("CPU" if device == "cpu" else "AUTO"):
        run()
