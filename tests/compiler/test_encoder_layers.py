"""Encoder layers, which PyTorch computes by one op, in compiled code."""

import pytest
import torch
from test_fused_convolutions import has_primitives
from torch import nn
from torch._inductor import config

import xpurt

OP = "aten::_transformer_encoder_layer_fwd"


def layers(*, norm_first: bool, activation: str) -> nn.Module:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        32, 4, 64, activation=activation, norm_first=norm_first, batch_first=True
    )
    made = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    for each in made.parameters():  # biases and norms are 0 and 1 in a new layer
        nn.init.uniform_(each, -0.3, 0.3)
    return made.eval()


def ops_of(model: nn.Module, x: torch.Tensor, **given: torch.Tensor) -> set[str]:
    """The ops that a compiled call runs, whose result is that of the CPU."""
    with torch.no_grad():
        expected = model(x, **given)
        model, on_xpu = model.to("xpu"), x.to("xpu")
        given = {name: each.to("xpu") for name, each in given.items()}
        compiled = torch.compile(model)
        compiled(on_xpu, **given)
        xpurt.op_report(reset=True)
        found = compiled(on_xpu, **given)
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-4)
    return {row.op for row in xpurt.op_report().rows}


@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.parametrize(
    ("activation", "norm_first"),
    [
        ("relu", False),
        ("gelu", True),
        pytest.param("relu", True, marks=pytest.mark.slow),
        pytest.param("gelu", False, marks=pytest.mark.slow),
    ],
)
def test_a_layer_becomes_its_parts(
    xpu: torch.device, activation: str, norm_first: bool
) -> None:
    model = layers(norm_first=norm_first, activation=activation)
    with xpurt.kernel_policy("sycl"):
        assert OP not in ops_of(model, torch.randn(2, 7, 32))


@pytest.mark.rest
def test_frozen_layers_are_fused(xpu: torch.device) -> None:
    model = layers(norm_first=False, activation="gelu")
    with xpurt.kernel_policy("sycl"), config.patch(freezing=True):
        found = ops_of(model, torch.randn(2, 7, 32))
    assert OP not in found
    if has_primitives(xpu):
        assert "xpurt::fused_product" in found


@pytest.mark.usefixtures("xpu")
def test_a_layer_with_a_mask_stays() -> None:
    model = layers(norm_first=False, activation="gelu")
    hidden = torch.zeros(2, 7, dtype=torch.bool)
    hidden[0, 5:] = True
    with xpurt.kernel_policy("sycl"):
        assert OP in ops_of(model, torch.randn(2, 7, 32), src_key_padding_mask=hidden)
