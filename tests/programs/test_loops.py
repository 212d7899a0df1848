"""Training loops of accelerate, which finds xpu by itself."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED = torch.Generator().manual_seed(0)
DATA = TensorDataset(
    torch.rand(24, 8, generator=SEED), torch.randint(0, 3, (24,), generator=SEED)
)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3)
    )


def plain_losses() -> list[float]:
    """One epoch in order on the CPU: what the loops have to give."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    for x, y in DataLoader(DATA, batch_size=8):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.fixture
def accelerate(xpu: torch.device) -> Iterator[Any]:
    accelerate = pytest.importorskip("accelerate")
    yield accelerate
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    gc.collect()


def test_accelerate(accelerate: Any, xpu: torch.device) -> None:
    accelerator = accelerate.Accelerator()
    assert accelerator.device.type == "xpu"
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(DATA, batch_size=8)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    found = []
    for x, y in loader:
        assert x.device == xpu
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        found.append(loss.item())
    torch.testing.assert_close(found, plain_losses(), rtol=1e-4, atol=0)
    accelerator.free_memory()
