"""AOTInductor's packages of models on xpu: compiled, loaded, called."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

import xpurt


def only_under(mapping: str) -> None:
    """A package takes seconds to make, and one mapping of a kind is enough."""
    if xpurt.get_xpu_mapping() != mapping:
        pytest.skip(f"only under the mapping {mapping}")


class Counter(nn.Module):
    """Writes to a buffer and to an input; returns a result, an input and a CPU tensor."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 4)
        self.register_buffer("calls", torch.zeros(4))

    def forward(self, x: Tensor, total: Tensor, on_cpu: Tensor) -> Any:
        self.calls.add_(1)
        y = self.layer(x) * self.calls
        total.add_(y.sum(0))
        return y, total, on_cpu + 1


def packaged(
    model: nn.Module, inputs: tuple[Any, ...], path: Path, **kwargs: Any
) -> Any:
    exported = torch.export.export(model, inputs, **kwargs)
    torch._inductor.aoti_compile_and_package(exported, package_path=str(path))
    return torch._inductor.aoti_load_package(str(path))


def two_layers(device: torch.device) -> nn.Module:
    # Constants of fewer elements would become literals of the code.
    layers = nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16)
    return nn.Sequential(*layers).to(device).eval()


@pytest.mark.slow
def test_a_package_takes_any_batch_and_other_constants(
    xpu: torch.device, tmp_path: Path
) -> None:
    only_under("CPU")
    model, other = two_layers(xpu), two_layers(xpu)
    batch = torch.export.Dim("batch", min=2, max=64)
    x = torch.randn(4, 8, device=xpu)
    loaded = packaged(model, (x,), tmp_path / "m.pt2", dynamic_shapes=({0: batch},))
    for size in (2, 4, 33):
        x = torch.randn(size, 8, device=xpu)
        y = loaded(x)
        assert y.device == x.device
        assert_close(y, model(x))
    assert all(each.device.type == "xpu" for each in model.parameters())
    names = ["0.bias", "0.weight", "2.bias", "2.weight"]
    assert sorted(loaded.get_constant_fqns()) == names
    loaded.load_constants(dict(other.state_dict()), check_full_update=True)
    assert_close(loaded(x), other(x))


@pytest.mark.rest
@pytest.mark.mappings("CPU")
def test_what_the_model_writes_arrives(xpu: torch.device, tmp_path: Path) -> None:
    only_under("CPU")
    model = Counter().to(xpu)
    expected = copy.deepcopy(model)
    x, on_cpu = torch.randn(3, 8, device=xpu), torch.zeros(2)
    totals = [torch.zeros(4, device=xpu) for _ in range(2)]
    with torch.no_grad():
        loaded = packaged(model, (x, totals[0].clone(), on_cpu), tmp_path / "m.pt2")
        for _ in range(3):
            y, total, other = loaded(x, totals[0], on_cpu)
            wanted, _, _ = expected(x, totals[1], on_cpu)
            assert_close(y, wanted)
            assert_close(totals[0], totals[1])
            assert_close(total, totals[1])
            assert (total.device.type, other.device.type) == ("xpu", "cpu")


@pytest.mark.rest
def test_a_package_of_a_cpu_model_stays_one(tmp_path: Path) -> None:
    x = torch.randn(3, 8)
    loaded = packaged(nn.Linear(8, 4), (x,), tmp_path / "m.pt2")
    assert "xpurt" not in loaded.get_metadata()
    assert loaded(x).device.type == "cpu"


def test_memory_that_the_host_cannot_read_is_refused(
    xpu: torch.device, tmp_path: Path
) -> None:
    only_under("GPU")
    model, x = nn.Linear(8, 4).to(xpu), torch.randn(3, 8, device=xpu)
    with pytest.raises(RuntimeError, match="the host can't read the memory"):
        packaged(model, (x,), tmp_path / "m.pt2")
