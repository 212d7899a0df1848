"""Where quantized ops run on xpu: in place where the host reads the memory, never on
copies."""

import pytest
import torch
from torch import nn

import xpurt

OURS = ("int8_linear", "int8_convolution", "int8_weight_linear", "int4_weight_linear")


def tiers_of(model: nn.Module, x: torch.Tensor) -> dict[str, str]:
    model(x)
    xpurt.op_report(reset=True)
    model(x)
    return {row.op: row.tier for row in xpurt.op_report().rows}


@pytest.mark.parametrize(
    ("kind", "op"),
    [
        ("dynamic", "int8_linear"),
        ("int8_weight_only", "int8_weight_linear"),
        ("int4_weight_only", "int4_weight_linear"),
    ],
)
def test_no_op_is_copied(on_xpu: torch.device, kind: str, op: str) -> None:
    model = xpurt.quantize(nn.Linear(64, 32).eval().to(on_xpu), kind)
    tiers = tiers_of(model, torch.randn(8, 64, device=on_xpu))
    assert "copy" not in tiers.values()
    in_place = xpurt.get_xpu_mapping() == "CPU"
    assert not in_place or tiers[f"xpurt::{op}"] == "native"


def test_no_convolution_is_copied(on_xpu: torch.device) -> None:
    model = xpurt.quantize(nn.Conv2d(3, 8, 3).eval().to(on_xpu), "dynamic")
    tiers = tiers_of(model, torch.randn(2, 3, 8, 8, device=on_xpu))
    assert "copy" not in tiers.values()
    in_place = xpurt.get_xpu_mapping() == "CPU"
    assert not in_place or tiers["xpurt::int8_convolution"] == "native"


def test_layer_and_input_on_two_devices(on_xpu: torch.device) -> None:
    model = xpurt.quantize(nn.Linear(64, 32).eval().to(on_xpu), "dynamic")
    with pytest.raises(RuntimeError, match=r"device"):
        model(torch.randn(8, 64))
