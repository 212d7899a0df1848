"""Steps of optimizers inside captures, with learning rates that are tensors."""

import copy
from typing import Any

import pytest
import torch
from captures import captured

ADAM = {"capturable": True}
OPTIMIZERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Adam", ADAM),
    ("AdamW", ADAM),
    ("SGD", {}),
    ("SGD", {"momentum": 0.9}),
    ("Adagrad", {}),
)


def start_of(device: torch.device) -> tuple[torch.nn.Linear, torch.nn.Linear]:
    torch.manual_seed(0)
    reference = torch.nn.Linear(8, 4)
    return reference, copy.deepcopy(reference).to(device)


def gradients(model: torch.nn.Linear, x: torch.Tensor) -> None:
    model.zero_grad(set_to_none=True)
    (model(x) ** 2).mean().backward()


@pytest.mark.parametrize("of_rate", ["number", "cpu", "xpu"])
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_fused_steps(
    cpu: torch.device, name: str, options: dict[str, Any], of_rate: str
) -> None:
    reference, model = start_of(cpu)
    rate = 0.1 if of_rate == "number" else torch.tensor(0.1, device=of_rate)
    kind = getattr(torch.optim, name)
    optimizer = kind(model.parameters(), lr=rate, fused=True, **options)
    plain = {k: v for k, v in options.items() if k != "capturable"}
    expected = kind(reference.parameters(), lr=0.1, **plain)
    x = torch.linspace(-1, 1, 24).view(3, 8)
    on_device = x.to(cpu)

    def step() -> torch.Tensor:
        gradients(model, on_device)
        optimizer.step()
        return model.weight.detach()

    with torch.xpu.stream(torch.xpu.Stream()):
        for _ in range(2):
            step()
    torch.xpu.synchronize()
    graph, _ = captured(step)
    for _ in range(2):
        graph.replay()
    if of_rate == "xpu":  # a number is in the graph, a tensor is read at each replay
        rate.fill_(0.02)  # type: ignore[union-attr]
    graph.replay()
    for number in range(5):
        gradients(reference, x)
        if number == 4 and of_rate == "xpu":
            expected.param_groups[0]["lr"] = 0.02
        expected.step()
    torch.testing.assert_close(
        model.weight.cpu(), reference.weight, rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_fused_steps_of_scaled_gradients(
    cpu: torch.device, name: str, options: dict[str, Any]
) -> None:
    _, model = start_of(cpu)
    kind = getattr(torch.optim, name)
    optimizer = kind(model.parameters(), lr=0.1, fused=True, **options)
    scaler = torch.amp.GradScaler("xpu", init_scale=8.0)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    scaler.scale(torch.zeros(1, device=cpu))  # makes its tensors
    graph, weight = captured(lambda: (scaler.step(optimizer), model.weight.detach())[1])
    before = weight.cpu().clone()
    for value in (8.0, float("inf")):
        for parameter in model.parameters():
            assert parameter.grad is not None
            parameter.grad.fill_(value)
        graph.replay()
        if value == 8.0:
            after = weight.cpu().clone()
            assert not torch.equal(after, before)
    assert torch.equal(weight.cpu(), after), "a step of infinite gradients is left out"


def test_a_step_that_asks_the_host_is_refused(cpu: torch.device) -> None:
    _, model = start_of(cpu)
    gradients(model, torch.ones(3, 8, device=cpu))
    optimizer = torch.optim.SGD(
        model.parameters(), lr=torch.tensor(0.1, device=cpu), foreach=True
    )
    with pytest.raises(RuntimeError, match="_local_scalar_dense cannot be captured"):
        captured(lambda: optimizer.step() or model.weight)
