"""Modules through the layers above eager mode, against eager mode."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from xpurt.conformance import Settings, known_failures_of
from xpurt.conformance.check_through import check_through
from xpurt.conformance.command import run_conformance
from xpurt.conformance.databases import load
from xpurt.conformance.layers_above import Layer
from xpurt.conformance.record import Record


def faulty(change: Callable[[Tensor], Tensor]) -> Callable[[nn.Module], Any]:
    def made(module: nn.Module) -> Any:
        return lambda *args: tree_map_only(Tensor, change, module(*args))

    return made


def stale(module: nn.Module) -> Any:
    """Computes with the parameters that the module had at the first call."""
    weights = {name: each.clone() for name, each in module.named_parameters()}
    return lambda *args: torch.func.functional_call(module, weights, args)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 0.8


FAULTS = {
    "scaled": faulty(lambda y: y * 0.93),
    "small values gone": faulty(lambda y: torch.where(y.abs() < 0.25, 0 * y, y)),
    "another type": faulty(lambda y: y.double()),
    "gradients scaled": faulty(Doubled.apply),
    "stale parameters": stale,
    "none": faulty(lambda y: y),
}


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str, dtype: torch.dtype, xpu: torch.device) -> None:
    entry = load(Settings().database)["nn.Linear"]
    record = Record("nn.Linear", str(dtype), "modules", lambda where: None)
    check_through(entry, dtype, record, Layer(FAULTS[fault]), most_samples=2)
    found = record.result()
    assert bool(found.failures) == (fault != "none"), found


@pytest.mark.parametrize("layer", ["optimize", "compile", "lazy"])
def test_a_sample_of_modules_is_right(layer: str) -> None:
    settings = Settings(
        dtypes=("float32",),
        ops=("nn.Linear", "nn.Conv2d", "nn.BatchNorm2d", "nn.GELU"),
        samples_per_pair=2,
        known_failures=known_failures_of(None, False, layer),
        through=layer,
    )
    assert run_conformance([settings]) == 0
