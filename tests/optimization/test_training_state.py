"""Checkpoints, copies and pickles of models and optimizers that are trained in halves."""

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer
from training_cases import adamw, mlp, sgd, small, step

from xpurt.optimization.training.optimize_training import optimize_for_training

State = dict[str, Any]


def saved_and_loaded(state: State) -> State:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: State = torch.load(file)
    return loaded


def trained(steps: range) -> tuple[nn.Module, Optimizer]:
    model, optimizer = small()
    for seed in steps:
        step(model, optimizer, seed)
    return model, optimizer


def same(one: nn.Module, other: nn.Module) -> bool:
    mine, yours = one.state_dict(), other.state_dict()
    return mine.keys() == yours.keys() and all(
        torch.equal(mine[name], yours[name]) for name in mine
    )


def test_the_state_is_exact_in_float32_and_has_the_names_of_before() -> None:
    model = mlp()
    found, _, _ = optimize_for_training(model, adamw(model.parameters()))
    assert same(model, found)
    assert all(value.dtype == torch.float32 for value in found.state_dict().values())


def test_the_state_loads_in_both_directions() -> None:
    model, _ = trained(range(3))
    plain = mlp()
    plain.load_state_dict(saved_and_loaded(model.state_dict()))
    assert same(plain, model)
    nn.init.uniform_(plain[0].weight)
    model.load_state_dict(plain.state_dict())
    assert same(plain, model)


def test_a_part_has_its_state_too() -> None:
    model, _ = trained(range(2))
    part = model[3].state_dict()
    assert torch.equal(part["weight"], model.state_dict()["3.weight"])
    model[3].load_state_dict({"weight": part["weight"] + 1, "bias": part["bias"]})
    assert torch.equal(model.state_dict()["3.weight"], part["weight"] + 1)


def test_the_variables_themselves_can_be_asked_for() -> None:
    model, _ = small()
    assert model.state_dict(keep_vars=True)["0.weight"] is model[0].weight


def test_a_resumed_training_is_the_same_bit_by_bit() -> None:
    whole, of_whole = trained(range(6))
    half, of_half = trained(range(3))
    states = saved_and_loaded(
        {"model": half.state_dict(), "optimizer": of_half.state_dict()}
    )
    resumed, of_resumed = trained(range(7, 8))
    resumed.load_state_dict(states["model"])
    of_resumed.load_state_dict(states["optimizer"])
    for seed in range(3, 6):
        step(resumed, of_resumed, seed)
    assert same(resumed, whole)
    assert_equal(of_resumed.state_dict()["state"], of_whole.state_dict()["state"])


def assert_equal(one: State, other: State) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_the_state_of_the_optimizer_loads_in_both_directions() -> None:
    model, optimizer = trained(range(3))
    saved = saved_and_loaded(optimizer.state_dict())
    plain = adamw(mlp().parameters())
    plain.load_state_dict(saved)
    assert_equal(plain.state_dict()["state"], saved["state"])
    other = mlp()
    of_other = adamw(other.parameters())
    step(other, of_other)
    optimizer.load_state_dict(saved_and_loaded(of_other.state_dict()))
    assert_equal(optimizer.state_dict()["state"], of_other.state_dict()["state"])
    assert optimizer.param_groups[0]["params"][0] is model[0].weight
    assert optimizer.param_groups[0]["fused"] is True
    step(model, optimizer)
    assert len(optimizer.state) == len(list(model.parameters()))


def test_state_from_before_is_taken_over() -> None:
    model, expected = mlp(), mlp()
    optimizer, of_expected = adamw(model.parameters()), adamw(expected.parameters())
    step(model, optimizer)
    step(expected, of_expected)
    model, optimizer, _ = optimize_for_training(model, optimizer)
    step(model, optimizer, 1)
    assert optimizer.state_dict()["state"][0]["step"] == 2
    step(expected, of_expected, 1)
    torch.testing.assert_close(
        model.state_dict(), expected.state_dict(), rtol=0, atol=1e-4
    )


@pytest.mark.parametrize("way", ["pickle", "deepcopy"])
def test_copies_train_on_alike(way: str) -> None:
    model, optimizer = trained(range(3))
    both = (model, optimizer)
    copied: tuple[nn.Module, Optimizer] = (
        pickle.loads(pickle.dumps(both)) if way == "pickle" else copy.deepcopy(both)
    )
    other, of_other = copied
    assert type(other) is type(model)
    assert type(of_other) is type(optimizer)
    assert of_other.param_groups[0]["params"][0] is other[0].weight
    assert other[0].weight is not model[0].weight
    for seed in range(3, 5):
        step(other, of_other, seed)
    expected, _ = trained(range(3))
    assert same(model, expected)
    step(model, optimizer, 3)
    step(model, optimizer, 4)
    assert same(other, model)
    assert other[0].weight.dtype == torch.bfloat16


def test_classes_are_subclasses_with_the_name_of_before() -> None:
    model, optimizer = small()
    assert isinstance(model, nn.Sequential)
    assert isinstance(optimizer, torch.optim.AdamW)
    assert (type(model).__name__, type(optimizer).__name__) == ("Sequential", "AdamW")
    assert repr(model) == repr(mlp())


def test_assigned_parameters_are_refused() -> None:
    model, _ = small()
    with pytest.raises(RuntimeError, match="Load without it"):
        model.load_state_dict(mlp().state_dict(), assign=True)


def test_a_cast_model_is_refused() -> None:
    model, optimizer = small()
    model.float()
    with pytest.raises(RuntimeError, match="Don't cast or shard a model"):
        step(model, optimizer)
    with pytest.raises(RuntimeError, match="Don't cast or shard a model"):
        model.state_dict()


@pytest.mark.parametrize("before", [True, False])
def test_another_memory_format(before: bool) -> None:
    model: Any = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten())
    if before:
        model.to(memory_format=torch.channels_last)
    found: Any
    found, optimizer, _ = optimize_for_training(model, sgd(model.parameters()))
    if not before:
        found.to(memory_format=torch.channels_last)
    assert found[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert same(model, found)
    found(torch.rand(2, 3, 3, 3)).sum().backward()
    optimizer.step()
    expected = sgd(model.parameters())
    for p, q in zip(model.parameters(), found.parameters(), strict=True):
        assert q.grad is not None
        p.grad = q.grad.float()
    expected.step()
    torch.testing.assert_close(found.state_dict(), model.state_dict())
