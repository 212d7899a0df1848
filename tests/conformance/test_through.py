"""Modules through the layers above eager mode, against eager mode."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from xpurt.startup.extras import MissingExtra
from xpurt_tools.conformance import Settings, known_failures_of
from xpurt_tools.conformance.check_through import check_through
from xpurt_tools.conformance.command import run_conformance
from xpurt_tools.conformance.databases import Entry, load
from xpurt_tools.conformance.layers_above import LAYERS, Layer
from xpurt_tools.conformance.models import of_packages
from xpurt_tools.conformance.programs import Normed
from xpurt_tools.conformance.record import Record
from xpurt_tools.conformance.results import Result


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


def run(
    name: str,
    layers: Sequence[Layer],
    dtype: torch.dtype = torch.float32,
    most: int = 2,
) -> Result:
    entry = load(Settings().database)[name]
    record = Record(name, str(dtype), entry.category, lambda where: None)
    check_through(entry, dtype, record, layers, most_samples=most)
    return record.result()


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str, dtype: torch.dtype, xpu: torch.device) -> None:
    found = run("nn.Linear", [Layer(FAULTS[fault])], dtype)
    assert bool(found.failures) == (fault != "none"), found


FORMS = {f"{name} {each.form}": each for name in LAYERS for each in LAYERS[name]}
# It takes longer; no module of the database has 16 inputs, the smallest group.
APART = ("compile ", "quantize int4_weight_only")


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("form", [each for each in FORMS if each not in APART])
def test_each_layer_is_compared(form: str, xpu: torch.device) -> None:
    """With a fault behind the layer, and without one."""
    layer = FORMS[form]

    def made(module: nn.Module) -> Any:
        return faulty(lambda y: y * 0.93)(layer.made(module))

    assert run("nn.Linear", [layer], most=1).ok
    wrong = run("nn.Linear", [replace(layer, made=made)], most=1)
    assert wrong.failed == sum(wrong.trials.values()), wrong


@pytest.mark.mappings("CPU")
def test_weights_that_are_cut_are_found(
    xpu: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(weight: Tensor) -> tuple[Tensor, Tensor]:
        scale = weight.detach().abs().flatten(1).amax(1) / 127
        return (weight.detach() / scale[:, None]).to(torch.int8), scale

    monkeypatch.setattr("xpurt.quantization.layers.int8_per_channel", cut)
    found = run("nn.Linear", [FORMS["quantize dynamic"]], most=1)
    assert "a weight of '' is off by" in found.failures[0].message


@pytest.mark.mappings("CPU")
def test_an_activation_of_another_kind_is_found(xpu: torch.device) -> None:
    def made(module: nn.Module) -> Any:
        if module.activation == "gelu_tanh":
            module.activation = "gelu"
        return module.fused

    found = run("nn.Linear", [replace(FORMS["fused "], made=made)], most=1)
    assert found.failed_variants.keys() == {"gelu_tanh", "gelu_tanh on CPU tensors"}


@pytest.mark.rest
@pytest.mark.parametrize("layer", ["lazy"])
def test_a_sample_by_the_command(layer: str) -> None:
    settings = Settings(
        dtypes=("float32",),
        ops=("nn.Linear", "nn.BatchNorm2d"),
        samples_per_pair=1,
        known_failures=known_failures_of(None, False, layer),
        through=layer,
    )
    assert run_conformance([settings]) == 0


@pytest.mark.rest
@pytest.mark.mappings("CPU")
def test_a_compiled_module_is_right(xpu: torch.device) -> None:
    assert run("nn.Linear", LAYERS["compile"], most=1).ok


class Scaled(torch.overrides.TorchFunctionMode):
    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        found = function(*args, **(kwargs or {}))
        return found * 1.001 if function in (torch.add, torch.Tensor.add_) else found


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("name", ["lazy", "autocast", "cpu_kernels"])
def test_ops_are_compared(name: str, xpu: torch.device) -> None:
    layer = LAYERS[name][-1 if name != "autocast" else 1]
    found = run("add", [layer], most=1)
    assert found.ok
    assert found.trials == {"values": 2 * len(layer.devices)}
    wrong = run("add", [replace(layer, made=Scaling)], most=1)
    assert wrong.failed == 2 * len(layer.devices)


class Scaling:
    def __init__(self, program: nn.Module) -> None:
        self.program = program

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with Scaled():
            return self.program(*args, **kwargs)


@pytest.mark.mappings("CPU")
def test_gradients_that_cancel_are_right(xpu: torch.device) -> None:
    """That of a bias before a batch norm is what rounding leaves of zero."""

    def noisy(noise: float) -> Result:
        def made(module: Any) -> Any:
            if isinstance(module, Normed):
                module.module.bias.register_hook(lambda gradient: gradient + noise)
            return module

        return run("nn.Conv3d", [Layer(made, devices=("cpu",))], most=1)

    assert noisy(2e-7).trials["wider"] == 1
    assert noisy(1e-4).failed_variants == {"batch norm on CPU tensors": 1}


def test_models_want_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingExtra, match=r'timm.*pip install "xpurt\[programs\]"'):
        of_packages()


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("form", ["quantize int8_weight_only", "optimize ", "lazy "])
def test_models_are_compared(form: str, xpu: torch.device) -> None:
    def built() -> Any:
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(16, 8), nn.GELU()), (torch.randn(3, 16),)

    def trials(layer: Layer) -> Record:
        record = Record("mine", "float32", "models", lambda where: None)
        check_through(model, torch.float32, record, [layer])
        return record

    def made(module: nn.Module) -> Any:
        return faulty(lambda y: y * 0.93)(FORMS[form].made(module))

    model = Entry("model", "mine", "models", built, frozenset({torch.float32}))
    assert trials(FORMS[form]).result().trials.keys() == {"values"}
    wrong = trials(replace(FORMS[form], made=made)).result()
    assert wrong.failed == sum(wrong.trials.values())


@pytest.mark.mappings("CPU")
def test_a_result_that_cannot_be_compared_fails(xpu: torch.device) -> None:
    """It is not taken for one that draws numbers."""

    class WithCache(nn.Linear):
        def forward(self, x: torch.Tensor) -> Any:
            return super().forward(x), object()

    built = lambda: (WithCache(4, 4), (torch.randn(3, 4),))  # noqa: E731
    model = Entry("model", "mine", "models", built, frozenset({torch.float32}))
    record = Record("mine", "float32", "models", lambda where: None)
    check_through(model, torch.float32, record, [FORMS["optimize "]])
    result = record.result()
    assert result.trials.keys() == {"failed"}
    assert "object can't be compared" in result.failures[0].message
