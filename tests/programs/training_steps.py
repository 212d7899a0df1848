"""The same steps of training on the CPU and on xpu."""

import copy
from collections.abc import Callable, Mapping

import torch
from torch import nn

import xpurt

STEPS = 3
Batch = Mapping[str, torch.Tensor]
Loss = Callable[[nn.Module, Batch], torch.Tensor]


def losses(
    model: nn.Module,
    batch: Batch,
    loss: Loss,
    device: torch.device | str,
    steps: int = STEPS,
    optimizer_of: Callable[..., torch.optim.Optimizer] = torch.optim.AdamW,
) -> list[float]:
    """The loss before each of the steps, of a copy of the model on `device`."""
    model = copy.deepcopy(model).to(device)
    batch = {name: tensor.to(device) for name, tensor in batch.items()}
    optimizer = optimizer_of(model.parameters(), lr=1e-3)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(model, batch)
        value.backward()
        optimizer.step()
        found.append(value.item())
    return found


def check(
    model: nn.Module,
    batch: Batch,
    loss: Loss,
    xpu: torch.device,
    optimizer_of: Callable[..., torch.optim.Optimizer] = torch.optim.AdamW,
) -> None:
    """Losses are equal within 1e-4, and no op was run on a copy if the host reads xpu's
    memory."""
    model.train()
    expected = losses(model, batch, loss, "cpu", optimizer_of=optimizer_of)
    xpurt.op_report(reset=True)
    found = losses(model, batch, loss, xpu, optimizer_of=optimizer_of)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=0)
    assert expected[0] != expected[-1]  # it did train
    if xpurt.get_xpu_mapping() == "CPU":
        copied = {row.op for row in xpurt.op_report().rows if row.tier == "copy"}
        assert not copied
