"""Tensors and models on xpu that are saved, loaded, pickled and copied."""

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

# Arguments of torch.load, and the device of a tensor that was saved on xpu:0.
PLACES: dict[str, tuple[Any, str]] = {
    "none": (None, "xpu:0"),
    "cpu": ("cpu", "cpu"),
    "xpu": ("xpu", "xpu:0"),
    "index": ("xpu:0", "xpu:0"),
    "device": (torch.device("xpu"), "xpu:0"),
    "stays": (lambda storage, place: storage, "cpu"),
    "function": (lambda storage, place: storage.to(device="xpu"), "xpu:0"),
    "table": ({"xpu:0": "cpu"}, "cpu"),
}


@pytest.mark.parametrize("place", PLACES)
def test_every_form_of_map_location(place: str, xpu: torch.device) -> None:
    map_location, expected = PLACES[place]
    tensor = torch.arange(6.0, device=xpu).reshape(2, 3)
    file = io.BytesIO()
    torch.save({"tensor": tensor, "view": tensor[1]}, file)
    file.seek(0)
    loaded = torch.load(file, map_location=map_location)
    assert str(loaded["tensor"].device) == expected
    assert torch.equal(loaded["tensor"].cpu(), tensor.cpu())
    loaded["view"].zero_()
    assert loaded["tensor"][1].tolist() == [0, 0, 0]  # the storage is still shared


def test_from_the_cpu_to_xpu(xpu: torch.device, tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    torch.save(model.state_dict(), tmp_path / "model.pt")
    for mapped in (False, True):
        state = torch.load(tmp_path / "model.pt", map_location=xpu, mmap=mapped)
        assert all(tensor.device == xpu for tensor in state.values())
        other = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).to(xpu)
        other.load_state_dict(state)
        assert torch.equal(other[0].weight.cpu(), model[0].weight)


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_copies_stay_on_xpu(copied: Callable[[Any], Any], xpu: torch.device) -> None:
    tensor = torch.randn(3, 4, device=xpu).t().requires_grad_()
    other = copied(tensor)
    assert (other.device, other.stride()) == (xpu, tensor.stride())
    assert other.requires_grad
    assert torch.equal(other.cpu(), tensor.cpu())
    model = copied(nn.Linear(2, 2).to(xpu))
    assert model.weight.device == xpu
    assert isinstance(model.weight, nn.Parameter)


def test_safetensors(xpu: torch.device, tmp_path: Path) -> None:
    tensors = {"a": torch.randn(3, 4, device=xpu), "b": torch.arange(5, device=xpu)}
    path = tmp_path / "model.safetensors"
    save_file(tensors, path)
    for device in ("xpu", "xpu:0"):
        loaded = load_file(path, device=device)
        assert all(t.device == xpu for t in loaded.values())
        assert torch.equal(loaded["a"].cpu(), tensors["a"].cpu())
    with safe_open(path, framework="pt", device="xpu:0") as file:
        part = file.get_slice("a")[1:2]
    assert part.device == xpu
    assert torch.equal(part.cpu(), tensors["a"][1:2].cpu())
