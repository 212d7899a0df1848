"""Training with split parameters computes what training in float32 does."""

import copy
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer
from training_cases import (
    CASES,
    MakeOptimizer,
    adamw,
    mlp,
    on,
    optimized,
    sgd,
    small,
    train,
)
from training_cases import step as one_step

from xpurt.optimization.training import optimize_training, split_optimizer
from xpurt.optimization.training.optimize_training import optimize_for_training


def losses(
    name: str, make: MakeOptimizer, device: torch.device | str
) -> tuple[torch.Tensor, ...]:
    """Of float32 training, under autocast, and optimized."""
    case = CASES[name]()
    plain, amp, whole = (on(case, device) for _ in range(3))
    given, optimizer = optimized(whole, make)
    found = (
        train(plain, make(plain.model.parameters())),
        train(amp, make(amp.model.parameters()), autocast=True),
        train(given, optimizer),
    )
    return tuple(torch.tensor(each, dtype=torch.float64) for each in found)


def check(name: str, make: MakeOptimizer, device: torch.device | str) -> None:
    float32, autocast, found = losses(name, make, device)
    assert found[-1] < 0.95 * found[0]  # it learns
    error = (found - float32).abs().max()
    assert error < 0.004 * float32.max()
    assert error < 4 * (autocast - float32).abs().max() + 1e-3


@pytest.mark.parametrize("make", [sgd, adamw], ids=["SGD", "AdamW"])
@pytest.mark.parametrize("name", CASES)
def test_losses_are_those_of_float32(name: str, make: MakeOptimizer) -> None:
    check(name, make, "cpu")


@pytest.mark.parametrize("name", CASES)
def test_losses_on_xpu(name: str, xpu: torch.device) -> None:
    check(name, adamw, xpu)


def moved(optimizes: bool) -> tuple[float, float]:
    """How far 1000 steps move a weight of 1 in plain bfloat16 or optimized, and how far
    they would in float32."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    optimizer: Optimizer
    if optimizes:
        optimizer = torch.optim.SGD(model.parameters(), 1e-5)
        model, optimizer, _ = optimize_for_training(model, optimizer)  # type: ignore[assignment]
    else:
        model.bfloat16()
        optimizer = torch.optim.SGD(model.parameters(), 1e-5)
    for _ in range(1000):
        model.weight.grad = torch.ones_like(model.weight)
        optimizer.step()
    return 1 - model.state_dict()["weight"].item(), 1e-2


def test_a_step_far_below_the_resolution_of_bfloat16_counts() -> None:
    found, wanted = moved(optimizes=False)
    assert found == 0
    found, wanted = moved(optimizes=True)
    assert found == pytest.approx(wanted, rel=1e-2)


OPTIONS: dict[type[Optimizer], dict[str, Any]] = {
    torch.optim.SGD: {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True},
    torch.optim.Adam: {"amsgrad": True, "weight_decay": 0.1},
}
# Each kind with each form of a step that it has.
STEPS = [
    pytest.param(kind, options, id=f"{kind.__name__}{'-'.join(['', *options])}")
    for kind in split_optimizer.KINDS
    if kind is not torch.optim.SparseAdam
    for options in ({}, {"foreach": True}, {"fused": True})
    if options.keys() <= inspect.signature(kind).parameters.keys()
]


@pytest.mark.parametrize(("kind", "options"), STEPS)
def test_a_step_is_that_in_float32(
    kind: Callable[..., Optimizer],
    options: dict[str, bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bit by bit, for the same gradients, in several chunks."""
    monkeypatch.setattr(split_optimizer, "CHUNK_BYTES", 4 * 300)
    first = nn.Sequential(*(nn.Linear(16, 16, bias=False) for _ in range(3)))
    second = copy.deepcopy(first)
    form = options or {"foreach": False}
    form = form if form.keys() <= inspect.signature(kind).parameters.keys() else {}
    options = {**OPTIONS.get(kind, {}), "lr": 1e-2, **form}  # type: ignore[call-overload]
    plain = kind(first.parameters(), **options)
    given = kind(second.parameters(), **options)
    _, found, _ = optimize_for_training(second, given, inplace=True)
    for _ in range(4):
        for p, q in zip(first.parameters(), second.parameters(), strict=True):
            q.grad = torch.randn_like(q)
            p.grad = q.grad.float()
        plain.step()
        found.step()
    assert_equal(second.state_dict(), first.state_dict())
    assert_equal(found.state_dict()["state"], plain.state_dict()["state"])


def assert_equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_a_step_takes_copies_of_a_chunk_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """In bytes: a larger parameter is a chunk by itself."""
    monkeypatch.setattr(split_optimizer, "CHUNK_BYTES", 4 * 100)
    sizes = [50, 50, 1, 300, 40]
    model = nn.Sequential(*(nn.Linear(size, 1, bias=False) for size in sizes))
    chunks = []

    class Recording(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            chunks.append([p.numel() for p in self.param_groups[0]["params"]])

    monkeypatch.setattr(optimize_training, "KINDS", (Recording,))
    given = Recording(model.parameters(), 0.1)
    _, optimizer, _ = optimize_for_training(model, given, inplace=True)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    assert chunks == [[50, 50], [1], [300], [40]]


def test_sparse_gradients() -> None:
    first = nn.Embedding(10, 4, sparse=True)
    second = copy.deepcopy(first)
    plain = torch.optim.SparseAdam(first.parameters())
    second, found, _ = optimize_for_training(  # type: ignore[assignment]
        second, torch.optim.SparseAdam(second.parameters())
    )
    for model, optimizer in ((first, plain), (second, found)):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.tensor([1, 5, 1])).sum().backward()
            optimizer.step()
    assert torch.equal(second.state_dict()["weight"], first.weight.detach())


def test_the_rest_stays_float32() -> None:
    model, _ = small()
    assert model[0].weight.dtype == model[3].bias.dtype == torch.bfloat16
    assert model[1].weight.dtype == torch.float32
    assert model(torch.rand(2, 8)).dtype == torch.float32


def test_the_parameters_stay_the_same_objects_in_the_same_memory() -> None:
    model = mlp()
    weight = model[0].weight
    weight.grad = torch.ones_like(weight)
    found, optimizer, _ = optimize_for_training(
        model, adamw(model.parameters()), inplace=True
    )
    assert found is model
    assert weight is model[0].weight
    assert weight.grad.dtype == torch.bfloat16
    memory, version = weight.data_ptr(), weight._version
    one_step(model, optimizer)
    assert weight.data_ptr() == memory
    assert weight._version > version


def test_copies_are_trained_and_the_originals_stay() -> None:
    model = mlp()
    optimizer = adamw(model.parameters())
    before = copy.deepcopy(model.state_dict())
    found, of_found, _ = optimize_for_training(model, optimizer)
    one_step(found, of_found)
    assert not optimizer.state
    assert model[0].weight.dtype == torch.float32
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    assert of_found.param_groups[0]["params"][0] is found[0].weight
    assert not torch.equal(found.state_dict()["0.weight"], before["0.weight"])


def test_a_shared_parameter_is_split_once() -> None:
    model = nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 7, bias=False))
    model[1].weight = model[0].weight
    found, optimizer, done = optimize_for_training(model, adamw(model.parameters()))
    assert [name for name, _ in done[:2]] == ["0.weight", "1.weight"]
    assert found[0].weight is found[1].weight
    found(torch.tensor([1, 2])).sum().backward()
    optimizer.step()
    state = found.state_dict()
    assert torch.equal(state["0.weight"], state["1.weight"])
    assert not torch.equal(state["0.weight"], model[0].weight)
    assert len(list(found.buffers())) == 1


def test_a_frozen_parameter_can_be_added_later() -> None:
    model = mlp()
    model[0].requires_grad_(False)
    head = list(model[3].parameters())
    found, optimizer, _ = optimize_for_training(model, adamw(head), inplace=True)
    before = found.state_dict()["0.weight"]
    one_step(found, optimizer)
    assert torch.equal(found.state_dict()["0.weight"], before)
    model[0].requires_grad_(True)
    optimizer.add_param_group({"params": model[0].parameters(), "lr": 1e-6})
    one_step(found, optimizer)
    change = (found.state_dict()["0.weight"] - before).abs()
    assert 0 < change.max() < 2e-6
    assert optimizer.state[model[0].weight]["exp_avg"].dtype == torch.float32


def test_what_another_optimizer_may_train_stays_float32() -> None:
    model = mlp()
    found, _, _ = optimize_for_training(model, adamw(model[3].parameters()))
    assert found[0].weight.dtype == torch.float32
    assert found[3].weight.dtype == torch.bfloat16


def test_only_the_step_becomes_fused_without_bfloat16() -> None:
    for dtype in (torch.float32, None):
        model = mlp()
        optimizer = adamw(model.parameters())
        found, fused, done = optimize_for_training(
            model, optimizer, dtype, inplace=True
        )
        assert found is model
        assert fused is optimizer
        assert done == [("optimizer", "fused")]
        assert all(p.dtype == torch.float32 for p in model.parameters())
        one_step(model, optimizer)
        assert optimizer.param_groups[0]["fused"] is True


def test_a_step_that_was_asked_for_is_kept() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, foreach=True)
    _, found, done = optimize_for_training(model, optimizer)
    assert done[-1] == ("optimizer", "not fused: foreach=True was asked for")
    assert found.param_groups[0]["foreach"] is True


def test_a_model_moves_to_xpu_afterwards(xpu: torch.device) -> None:
    model, optimizer = small()
    expected, of_expected = small()
    model.to(xpu)
    for seed in range(3):
        x = torch.rand(4, 8, generator=torch.Generator().manual_seed(seed))
        for each, of_each, given in (
            (model, optimizer, x.to(xpu)),
            (expected, of_expected, x),
        ):
            of_each.zero_grad()
            each(given).square().mean().backward()
            of_each.step()
    found = {name: value.cpu() for name, value in model.state_dict().items()}
    torch.testing.assert_close(found, expected.state_dict(), rtol=0, atol=1e-3)


def test_compiled() -> None:
    model, optimizer = small()
    expected, of_expected = small()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    for seed in range(3):
        one_step(compiled, optimizer, seed)  # type: ignore[arg-type]
        one_step(expected, of_expected, seed)
    torch.testing.assert_close(
        model.state_dict(), expected.state_dict(), rtol=0, atol=2e-3
    )
