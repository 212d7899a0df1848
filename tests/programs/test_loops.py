"""Training loops of accelerate and lightning, which find xpu by themselves."""

import gc
from collections.abc import Iterator
from pathlib import Path
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


def test_lightning(xpu: torch.device, tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")

    class XpuAccelerator(lightning.pytorch.accelerators.Accelerator):
        """lightning has none for xpu; this is all that it takes."""

        def setup_device(self, device: torch.device) -> None:
            torch.xpu.set_device(device)

        def teardown(self) -> None:
            torch.xpu.empty_cache()

        @staticmethod
        def parse_devices(devices: int) -> int:
            return devices

        @staticmethod
        def get_parallel_devices(devices: int) -> list[torch.device]:
            return [torch.device("xpu", index) for index in range(devices)]

        @staticmethod
        def auto_device_count() -> int:
            return torch.xpu.device_count()

        @staticmethod
        def is_available() -> bool:
            return torch.xpu.is_available()

        @staticmethod
        def name() -> str:
            return "xpu"

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = network()
            self.losses: list[float] = []

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            x, y = batch
            assert x.device.type == "xpu"
            loss = F.cross_entropy(self.network(x), y)
            self.losses.append(loss.item())
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    module = Module()
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator=XpuAccelerator(),
        devices=1,
        strategy=lightning.pytorch.strategies.SingleDeviceStrategy(device=xpu),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
    )
    trainer.fit(module, DataLoader(DATA, batch_size=8))
    torch.testing.assert_close(module.losses, plain_losses(), rtol=1e-4, atol=0)
    del module, trainer
    gc.collect()
