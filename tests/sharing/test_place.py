"""`place()`: modules of a model on different devices."""

import gc
from collections.abc import Iterator

import pytest
import torch
from torch import nn

import xpurt


class TwoParts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 16), nn.Tanh())
        self.decoder = nn.Sequential(nn.Linear(16, 3), nn.BatchNorm1d(3))

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(x)) * scale.to(self.decoder[0].weight.device)


@pytest.fixture(params=["explicit", "AUTO"])
def mapping(request: pytest.FixtureRequest) -> Iterator[str]:
    gc.collect()
    if not any(d.kind == "gpu" for d in xpurt.physical_devices()):
        pytest.skip("needs two devices: the virtual GPU is switched off")
    with xpurt.xpu_mapping(request.param):
        yield request.param
        gc.collect()


def train(model: nn.Module, device: str) -> list[float]:
    torch.manual_seed(1)
    x, y = torch.randn(8, 6).to(device), torch.randn(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        out = model(x, scale=torch.tensor(2.0).to(device))
        loss = nn.functional.mse_loss(out, y.to(out.device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("device", ["cpu", "xpu"])
def test_training_equals_the_cpu_s(mapping: str, device: str) -> None:
    torch.manual_seed(0)
    model, oracle = TwoParts(), TwoParts()
    oracle.load_state_dict(model.state_dict())
    placed = xpurt.place(model, {"encoder": "CPU", "decoder": "GPU"})
    assert train(model, device) == pytest.approx(train(oracle, "cpu"), rel=1e-4)
    for mine, expected in zip(model.parameters(), oracle.parameters(), strict=True):
        torch.testing.assert_close(mine.cpu(), expected, rtol=1e-3, atol=1e-5)
    placed.remove()


def test_parts_are_where_they_should_be(mapping: str) -> None:
    model = TwoParts()
    xpurt.place(model, {"": "CPU", "decoder": "GPU"})
    gpu, cpu = ("xpu:0", "xpu:1") if mapping == "explicit" else ("xpu:0", "xpu:0")
    assert {str(p.device) for p in model.encoder.parameters()} == {cpu}
    assert {str(p.device) for p in model.decoder.parameters()} == {gpu}
    assert {str(b.device) for b in model.decoder.buffers()} == {gpu}


def test_under_auto_the_ops_go_where_the_part_is() -> None:
    with xpurt.xpu_mapping("AUTO"), xpurt.kernel_policy("sycl"):
        names = {d.kind: d.name for d in xpurt.physical_devices()}
        if "gpu" not in names:
            pytest.skip("needs the virtual GPU")
        model = TwoParts()
        placed = xpurt.place(model, {"encoder": "GPU"})
        xpurt.op_report(reset=True)
        model.encoder(torch.ones(4, 6))
        ran = {row.device for row in xpurt.op_report() if "tanh" in row.op}
        assert ran == {names["gpu"]}
        placed.remove()
        del model, placed
        gc.collect()


def test_an_exception_in_forward_ends_the_preference() -> None:
    from xpurt import _C

    class Fails(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise KeyError("no")

    with xpurt.xpu_mapping("AUTO"):
        if len(xpurt.physical_devices()) < 2:
            pytest.skip("needs two devices")
        model = nn.Sequential(Fails())
        xpurt.place(model, {"0": "GPU"})
        with pytest.raises(KeyError):
            model(torch.ones(1))
        assert _C.set_preference("") == ""
        gc.collect()


def test_remove(mapping: str) -> None:
    model = TwoParts()
    placed = xpurt.place(model, {"encoder": "GPU"})
    placed.remove()
    placed.remove()
    assert next(model.encoder.parameters()).device.type == "xpu"
    with pytest.raises(RuntimeError):
        model.encoder(torch.ones(2, 6))  # nothing moves it any more


def test_errors_move_nothing(mapping: str) -> None:
    model = TwoParts()
    with pytest.raises(ValueError, match="no module 'head'"):
        xpurt.place(model, {"encoder": "GPU", "head": "CPU"})
    with pytest.raises(xpurt.MappingError, match="accelerator"):
        xpurt.place(model, {"encoder": "GPU", "decoder": "accelerator"})
    with pytest.raises(xpurt.MappingError, match="xpu:5"):
        xpurt.place(model, {"encoder": "GPU", "decoder": 5})
    assert {p.device.type for p in model.parameters()} == {"cpu"}
