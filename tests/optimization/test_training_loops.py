"""What training loops do around the step of an optimizer."""

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import StepLR
from training_cases import adamw, mlp, sgd, small, step

from xpurt.optimization.training.optimize_training import optimize_for_training


def inputs() -> Tensor:
    return torch.rand(4, 8, generator=torch.Generator().manual_seed(0))


def weights(model: nn.Module) -> Tensor:
    values: Tensor = model.state_dict()["0.weight"]
    return values


def test_a_closure_is_called_once_with_gradients() -> None:
    model, optimizer = small()
    expected, of_expected = small()
    calls = 0

    def closure() -> Tensor:
        nonlocal calls
        calls += 1
        optimizer.zero_grad()
        loss = model(inputs()).square().mean()
        loss.backward()
        return loss

    loss: Any = optimizer.step(closure)  # type: ignore[arg-type]
    assert calls == 1
    assert loss.requires_grad
    step(expected, of_expected)
    assert torch.equal(weights(model), weights(expected))


@pytest.mark.parametrize("before", [True, False])
def test_schedulers(before: bool) -> None:
    """Made before the optimization or after it; without their warnings."""
    model = mlp()
    optimizer = adamw(model.parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler = StepLR(optimizer, 1, 0.0) if before else None
        model, optimizer, _ = optimize_for_training(model, optimizer, inplace=True)
        scheduler = scheduler or StepLR(optimizer, 1, 0.0)
        step(model, optimizer)
        scheduler.step()
    assert model[0].weight.dtype == torch.bfloat16
    stopped = weights(model)
    expected = small()
    step(*expected)
    assert torch.equal(stopped, weights(expected[0]))
    step(model, optimizer)
    assert torch.equal(weights(model), stopped)


def test_hooks_of_a_step_run_once() -> None:
    model, optimizer = small()
    seen: list[str] = []
    optimizer.register_step_pre_hook(lambda *_: seen.append("before"))
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    step(model, optimizer)
    assert seen == ["before", "after"]


def test_a_parameter_without_gradient_stays() -> None:
    model, optimizer = small()
    before = weights(model)
    model[3](torch.rand(2, 16).bfloat16()).sum().backward()
    optimizer.step()
    assert torch.equal(weights(model), before)
    assert model[0].weight not in optimizer.state
    assert model[3].weight in optimizer.state


def test_gradients_accumulate_and_can_be_clipped() -> None:
    model, optimizer = small()
    for _ in range(2):
        model(inputs()).square().mean().backward()
    twice = model[0].weight.grad.float()
    optimizer.zero_grad()
    assert model[0].weight.grad is None
    model(inputs()).square().mean().backward()
    torch.testing.assert_close(
        twice, 2 * model[0].weight.grad.float(), rtol=0.02, atol=1e-4
    )
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    assert norm > 1e-3
    total = torch.stack([p.grad.float().norm() for p in model.parameters()]).norm()
    assert total.item() == pytest.approx(1e-3, rel=0.02)


@pytest.mark.parametrize("fused", [True, False])
def test_a_scaled_loss(fused: bool) -> None:
    """With a fused step the scale is taken off by the step, else before it. A step is
    left out where a gradient overflows."""
    model = mlp()
    given = torch.optim.AdamW(model.parameters(), 1e-3, fused=fused)
    model, optimizer, _ = optimize_for_training(model, given, inplace=True)
    expected, of_expected = copy.deepcopy((model, optimizer))
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale(model(inputs()).square().mean()).backward()
    scaler.step(optimizer)
    scaler.update()
    step(expected, of_expected)
    assert torch.equal(weights(model), weights(expected))
    for p in model.parameters():
        p.grad = torch.full_like(p, float("inf"))
    scaler.step(optimizer)
    assert torch.equal(weights(model), weights(expected))


def test_groups_have_options_of_their_own() -> None:
    model = mlp()
    groups = [
        {"params": model[0].parameters(), "lr": 0.0},
        {"params": [*model[1].parameters(), *model[3].parameters()]},
    ]
    found, optimizer, _ = optimize_for_training(model, sgd(groups))  # type: ignore[arg-type]
    step(found, optimizer)
    assert torch.equal(weights(found), weights(model))
    assert not torch.equal(found.state_dict()["3.weight"], model[3].weight)


def test_a_step_that_fails_leaves_the_optimizer_as_it_was() -> None:
    model, optimizer = small()
    groups = optimizer.param_groups
    before = weights(model)
    for group in groups:
        group["betas"] = None
    with pytest.raises(TypeError):
        step(model, optimizer)
    assert optimizer.param_groups is groups
    assert groups[0]["params"][0] is model[0].weight
    assert torch.equal(weights(model), before)
    groups[0]["betas"] = (0.9, 0.999)
    step(model, optimizer)
    assert not torch.equal(weights(model), before)
