"""`quantize_` of torchao: weights in 8 and 4 bits, float8, and training with low-precision
optimizers. (Its exported programs are in tests/quantization.)"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

ao = pytest.importorskip("torchao.quantization")
optim = pytest.importorskip("torchao.optim")

CONFIGURATIONS: dict[str, Any] = {
    "int8 weights": lambda: ao.Int8WeightOnlyConfig(),
    "int8 dynamic": lambda: ao.Int8DynamicActivationInt8WeightConfig(),
    "float8 weights": lambda: ao.Float8WeightOnlyConfig(),
    "intx weights": lambda: ao.IntxWeightOnlyConfig(),
}


def network(dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(0)
    return (
        nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
        .eval()
        .to(dtype)
    )


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_quantized_in_place(name: str, xpu: torch.device) -> None:
    x = torch.randn(8, 64)
    found = {}
    with torch.no_grad():
        plain = network()(x)
        for device in ("cpu", xpu):
            model = network().to(device)
            ao.quantize_(model, CONFIGURATIONS[name]())
            y: Tensor = model(x.to(device))
            assert y.device.type == torch.device(device).type
            found[device] = y.cpu()
    torch.testing.assert_close(found[xpu], found["cpu"], rtol=1e-2, atol=1e-2)
    assert not torch.equal(found["cpu"], plain)  # it is quantized


@pytest.mark.parametrize("name", ["int8 weights", "float8 weights"])
def test_a_quantized_model_is_moved(name: str, xpu: torch.device) -> None:
    x = torch.randn(8, 64)
    model = network()
    ao.quantize_(model, CONFIGURATIONS[name]())
    with torch.no_grad():
        expected = model(x)
        found = model.to(xpu)(x.to(xpu))
    assert found.device == xpu
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("name", ["AdamW8bit", "AdamW4bit"])
def test_optimizers_of_few_bits(name: str, xpu: torch.device) -> None:
    found = {}
    for device in ("cpu", xpu):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = nn.Linear(64, 128).to(device)  # states of 4,096 numbers are quantized
        optimizer = getattr(optim, name)(model.parameters(), lr=1e-2)
        x = torch.rand(8, 64, generator=torch.Generator().manual_seed(1)).to(device)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        found[device] = losses
    torch._dynamo.reset()
    assert found["cpu"][-1] < found["cpu"][0]
    torch.testing.assert_close(found[xpu], found["cpu"], rtol=2e-2, atol=0)
