"""Layers of LSTM and GRU as one op each: by oneDNN where it knows the device."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from kernels.kernel_forced import tiers_of
from xpurt import _C, kernel_policy, prefer
from xpurt.testing.oracle import agree

KINDS = pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM], ids=lambda k: k.__name__)
STEPS, BATCH, SIZE, HIDDEN = 6, 3, 4, 5
OPTIONS: dict[str, dict[str, Any]] = {
    "one layer": {},
    "without biases": {"bias": False, "num_layers": 2},
    "both directions": {"bidirectional": True, "num_layers": 2},
    "batch first": {"batch_first": True, "bidirectional": True},
    # All that goes between layers is dropped, whatever the random numbers.
    "dropout": {"num_layers": 2, "dropout": 1.0},
}


def layer(kind: type[nn.RNNBase]) -> str:
    return f"xpurt::{kind.__name__.lower()}_layer"


def given(model: nn.RNNBase, wanted: bool = True) -> tuple[Any, ...]:
    """Weights, an input and states of a model."""
    x = torch.randn(STEPS, BATCH, SIZE)
    if model.batch_first:
        x = x.transpose(0, 1)
    count = model.num_layers * (2 if model.bidirectional else 1)
    states = torch.randn(2 if model.mode == "LSTM" else 1, count, BATCH, HIDDEN)
    weights = {name: p.detach() for name, p in model.named_parameters()}
    for each in (x, *weights.values()):
        each.requires_grad_(wanted)
    return weights, x, [each.clone().requires_grad_(wanted) for each in states]


def called(model: nn.RNNBase) -> Callable[..., Any]:
    def run(weights: dict[str, Tensor], x: Tensor, states: list[Tensor]) -> Any:
        hx = tuple(states) if model.mode == "LSTM" else states[0]
        return functional_call(model, weights, (x, hx))

    return run


@pytest.mark.parametrize("options", OPTIONS)
@KINDS
def test_results_and_gradients(
    kind: type[nn.RNNBase], options: str, xpu: torch.device
) -> None:
    model = kind(SIZE, HIDDEN, **OPTIONS[options])
    _C.reset_op_report()
    with kernel_policy("sycl"):
        agree(called(model), *given(model), device=xpu)
    torch.xpu.synchronize()
    for op in (layer(kind), f"{layer(kind)}_backward"):
        assert len(tiers_of(op)) == 1
        assert tiers_of(op) <= {"sycl", "onednn"}


@pytest.mark.mappings("CPU", "AUTO")
@KINDS
def test_onednn_takes_them_on_a_cpu(kind: type[nn.RNNBase], xpu: torch.device) -> None:
    model = kind(SIZE, HIDDEN, device=xpu)
    x = torch.randn(STEPS, BATCH, SIZE, device=xpu)
    _C.reset_op_report()
    with prefer("CPU"), kernel_policy("sycl"):
        model(x)[0].sum().backward()
    torch.xpu.synchronize()
    assert tiers_of(layer(kind)) == {"onednn"}
    assert tiers_of(f"{layer(kind)}_backward") == {"onednn"}


@pytest.mark.mappings("CPU")
def test_a_gru_is_one_op_without_being_forced(xpu: torch.device) -> None:
    _C.reset_op_report()
    with torch.no_grad():
        nn.GRU(SIZE, HIDDEN, device=xpu)(torch.randn(STEPS, BATCH, SIZE, device=xpu))
    torch.xpu.synchronize()
    assert tiers_of("xpurt::gru_layer") == {"onednn"}
    assert not tiers_of("aten::_thnn_fused_gru_cell")


@KINDS
def test_cells_take_a_few_steps(kind: type[nn.RNNBase], xpu: torch.device) -> None:
    model = kind(SIZE, HIDDEN, bidirectional=True)
    weights, x, states = given(model)
    _C.reset_op_report()
    with kernel_policy("sycl"):
        short = x.detach()[:2].clone().requires_grad_()
        agree(called(model), weights, short, states, device=xpu)
    torch.xpu.synchronize()
    assert tiers_of(layer(kind)) == tiers_of(f"{layer(kind)}_backward") == {"sycl"}


@pytest.mark.mappings("AUTO")
@KINDS
def test_gradients_are_computed_where_the_layer_was(
    kind: type[nn.RNNBase], xpu: torch.device
) -> None:
    """Only oneDNN can read what it keeps for them."""
    model = kind(SIZE, HIDDEN)
    weights, x, states = given(model)
    expected = called(model)(weights, x, states)[0].sum()
    expected = torch.autograd.grad(expected, [x, *weights.values()])
    there = {name: p.detach().to(xpu).requires_grad_() for name, p in weights.items()}
    moved = x.detach().to(xpu).requires_grad_()
    for first, second, tier in (("CPU", "GPU", "onednn"), ("GPU", "CPU", "sycl")):
        _C.reset_op_report()
        with kernel_policy("sycl"):
            with prefer(first):
                made = called(model)(there, moved, [s.to(xpu) for s in states])[0]
            with prefer(second):
                found = torch.autograd.grad(made.sum(), [moved, *there.values()])
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine.cpu(), theirs)
        assert tiers_of(f"{layer(kind)}_backward") == {tier}


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
@KINDS
def test_without_gradients(
    kind: type[nn.RNNBase], off: type[torch.no_grad], xpu: torch.device
) -> None:
    model = kind(SIZE, HIDDEN, num_layers=2, bidirectional=True)
    with off(), kernel_policy("sycl"):
        agree(called(model), *given(model, wanted=False), device=xpu)


@pytest.mark.parametrize("which", ["input", "state", "weight"])
@KINDS
def test_some_of_the_gradients(
    kind: type[nn.RNNBase], which: str, xpu: torch.device
) -> None:
    model = kind(SIZE, HIDDEN)
    weights, x, states = given(model, wanted=False)
    one = {"input": x, "state": states[-1], "weight": weights["weight_hh_l0"]}[which]
    one.requires_grad_()
    with kernel_policy("sycl"):
        agree(called(model), weights, x, states, device=xpu)


@KINDS
def test_a_graph_that_is_kept_gives_the_same_again(
    kind: type[nn.RNNBase], xpu: torch.device
) -> None:
    model = kind(SIZE, HIDDEN, device=xpu)
    x = torch.randn(STEPS, BATCH, SIZE, device=xpu, requires_grad=True)
    with kernel_policy("sycl"):
        total = model(x)[0].square().sum()
        wanted = [x, *model.parameters()]
        first = torch.autograd.grad(total, wanted, retain_graph=True)
        second = torch.autograd.grad(total, wanted)
    for one, other in zip(first, second, strict=True):
        torch.testing.assert_close(one, other)


@KINDS
def test_gradients_of_gradients(kind: type[nn.RNNBase], xpu: torch.device) -> None:
    model = kind(SIZE, HIDDEN)

    def run(weights: dict[str, Tensor], x: Tensor, states: list[Tensor]) -> Tensor:
        output, _ = called(model)(weights, x, states)
        total = output.square().sum()
        (to_x,) = torch.autograd.grad(total, x, create_graph=True)
        return to_x.square().sum()

    with kernel_policy("sycl"):
        agree(run, *given(model), device=xpu)


@KINDS
def test_function_transforms(kind: type[nn.RNNBase], xpu: torch.device) -> None:
    model = kind(SIZE, HIDDEN)
    weights, x, states = given(model, wanted=False)

    def total(weights: dict[str, Tensor], x: Tensor, states: list[Tensor]) -> Tensor:
        return called(model)(weights, x, states)[0].square().sum()

    with kernel_policy("sycl"):
        agree(torch.func.grad(total), weights, x, states, device=xpu)


def test_states_and_inputs_with_gaps(xpu: torch.device) -> None:
    model = nn.LSTM(SIZE, HIDDEN)
    weights, x, states = given(model)

    def run(weights: dict[str, Tensor], x: Tensor, states: list[Tensor]) -> Any:
        wide = torch.stack(states, -1)
        gaps = torch.stack([x, x], -1)[..., 0]
        return called(model)(weights, gaps, [wide[..., 0], wide[..., 1]])

    with kernel_policy("sycl"):
        agree(run, weights, x, states, device=xpu)


@pytest.mark.mappings("CPU")
def test_a_primitive_is_made_once_per_length(xpu: torch.device) -> None:
    model = nn.GRU(SIZE, HIDDEN, device=xpu)
    with torch.no_grad():
        model(torch.randn(7, BATCH, SIZE, device=xpu))
        kept, most = _C.testing.onednn_plans(0)
        model(torch.randn(7, BATCH, SIZE, device=xpu))
        assert _C.testing.onednn_plans(0) == (kept, most)
        model(torch.randn(8, BATCH, SIZE, device=xpu))
    assert _C.testing.onednn_plans(0) == (min(kept + 1, most), most)
