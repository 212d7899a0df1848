"""The layers of a network as data-parallel training sees them: sizes and times."""

import time
from collections.abc import Sequence
from typing import Any

import torch

from xpurt_tools.bench.models import Case, sgd
from xpurt_tools.simulation import Layer

WARM_STEPS, STEPS = 2, 5


def measured_layers(
    case: Case, device: torch.device | str = "xpu"
) -> tuple[list[Layer], float]:
    """The parameters of a network in the order of forward, each with the time until its
    gradient was there, and the time of the rest of a step; the least of some steps.
    Times in microseconds."""
    model = case.model.to(device)
    batch = [each.to(device) for each in case.batch]
    optimizer = sgd(model.parameters())
    parameters: list[Any] = list(model.parameters())
    arrived = [0.0] * len(parameters)

    def note(number: int) -> Any:
        def hook(_: torch.Tensor) -> None:
            arrived[number] = time.perf_counter()

        return hook

    for number, each in enumerate(parameters):
        each.register_post_accumulate_grad_hook(note(number))
    best: tuple[list[Layer], float] = ([], float("inf"))
    least = float("inf")
    for step in range(WARM_STEPS + STEPS):
        torch.xpu.synchronize()
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss: Any = case.loss(model, *batch)
        torch.xpu.synchronize()
        backward = time.perf_counter()
        loss.backward()
        torch.xpu.synchronize()
        middle = time.perf_counter()
        optimizer.step()
        torch.xpu.synchronize()
        end = time.perf_counter()
        if step >= WARM_STEPS and end - begin < least:
            least = end - begin
            ends = [min(each, middle) for each in arrived]
            layers = _layers(parameters, ends, backward, middle)
            best = layers, (end - begin - (middle - backward)) * 1e6
    return best


def _layers(
    parameters: Sequence[torch.Tensor],
    ends: Sequence[float],
    begin: float,
    end: float,
) -> list[Layer]:
    """Layers whose gradients came in the order opposite to forward's: what came out of
    this order counts from the one before."""
    layers, before = [], begin
    for each, ended in zip(reversed(parameters), reversed(ends), strict=True):
        layers.append(Layer(each.nbytes, max(0.0, ended - before) * 1e6))
        before = max(before, ended)
    last = layers[-1]
    rest = max(0.0, end - before) * 1e6
    layers[-1] = Layer(last.parameter_bytes, last.backward_us + rest)
    return layers[::-1]
