"""Quantized layers outside torch.no_grad(): they run, and have no gradient."""

import pytest
import torch
from torch import Tensor, nn

import xpurt

KINDS = ["dynamic", "static", "int8_weight_only", "int4_weight_only"]

NO_GRADIENT = "which is for inference and has none"


def language_model(kind: str, device: str) -> tuple[nn.Module, Tensor]:
    """Quantized, with an embedding whose weight requires a gradient, and its input."""
    model = nn.Sequential(nn.Embedding(10, 64), nn.Linear(64, 32), nn.Linear(32, 8))
    tokens = torch.arange(9).to(device)
    quantized = xpurt.quantize(
        model.eval().to(device), kind, calibration=[tokens], group_size=16
    )
    return quantized, tokens


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 9])
def test_a_plain_call(device: str, rows: int, kind: str) -> None:
    model, tokens = language_model(kind, device)
    made = model(tokens[:rows])
    with torch.no_grad():
        assert torch.equal(made, model(tokens[:rows]))
    with pytest.raises(NotImplementedError, match=NO_GRADIENT):
        made.sum().backward()


def test_a_plain_call_of_a_convolution(device: str) -> None:
    layer = xpurt.quantize(nn.Conv2d(3, 4, 3).eval().to(device), "dynamic")
    x = torch.randn(2, 3, 6, 5).to(device).requires_grad_()
    made = layer(x)
    with torch.no_grad():
        assert torch.equal(made, layer(x))
    with pytest.raises(NotImplementedError, match=NO_GRADIENT):
        made.sum().backward()


def test_a_plain_call_of_a_compiled_model() -> None:
    """The compiler traces a backward pass, too. It may never run."""
    model, tokens = language_model("int8_weight_only", "cpu")
    made = torch.compile(model)(tokens)
    torch.testing.assert_close(made, model(tokens))
    with pytest.raises(NotImplementedError, match=NO_GRADIENT):
        made.sum().backward()
