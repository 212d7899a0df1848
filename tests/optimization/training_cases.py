"""Small networks, and their training in float32, under autocast, and optimized."""

import copy
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from xpurt.optimization.training.optimize_training import optimize_for_training
from xpurt_tools.bench.models import GPT, Case, classification, next_token

MakeOptimizer = Callable[[Iterable[Tensor]], Optimizer]


def adamw(parameters: Iterable[Tensor]) -> Optimizer:
    return torch.optim.AdamW(parameters, 1e-3)


def sgd(parameters: Iterable[Tensor]) -> Optimizer:
    return torch.optim.SGD(parameters, 0.05, momentum=0.9)


def cnn() -> Case:
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )
    images = torch.randn(16, 3, 12, 12), torch.randint(10, (16,))
    return Case(model, images, classification)


def gpt() -> Case:
    model = GPT(vocabulary=100, length=16, width=32, heads=4, layers=2)
    return Case(model, (torch.randint(100, (4, 17)),), next_token)


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 3)
    )


CASES = {"cnn": cnn, "gpt": gpt}


def on(case: Case, device: torch.device | str) -> Case:
    model = copy.deepcopy(case.model).to(device)
    return Case(model, tuple(each.to(device) for each in case.batch), case.loss)


def train(
    case: Case, optimizer: Optimizer, steps: int = 5, *, autocast: bool = False
) -> list[float]:
    """The losses."""
    losses = []
    kind = case.batch[0].device.type
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=autocast):
            loss = case.loss(case.model, *case.batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def optimized(case: Case, make: MakeOptimizer) -> tuple[Case, Optimizer]:
    model, optimizer, _ = optimize_for_training(
        case.model, make(case.model.parameters())
    )
    return Case(model, case.batch, case.loss), optimizer


def small() -> tuple[nn.Module, Optimizer]:
    """A model that is trained optimized, by AdamW."""
    model = mlp()
    found, optimizer, _ = optimize_for_training(
        model, adamw(model.parameters()), inplace=True
    )
    return found, optimizer


def step(model: nn.Module, optimizer: Optimizer, seed: int = 0) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(4, 8, generator=generator)
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
