"""Quantized networks are about as good as those in float32."""

import copy
from typing import Any

import pytest
from networks import (
    accuracy,
    calibration_images,
    loss_of,
    trained_digits,
    trained_gpt,
    windows,
)
from torch import nn

import xpurt

ACCURACY_POINTS = 0.5
RELATIVE_LOSS = 0.005


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("dynamic", {}),
        ("dynamic", {"calibration": True}),
        ("static", {"calibration": True}),
        ("static", {"calibration": True, "observer": "histogram"}),
        ("int8_weight_only", {}),
        ("int4_weight_only", {"group_size": 32}),
    ],
    ids=str,
)
def test_digits_are_read_as_well(
    device: str, kind: str, options: dict[str, Any]
) -> None:
    network = copy.deepcopy(trained_digits()).to(device)
    if "calibration" in options:
        options = {**options, "calibration": calibration_images(device)}
    quantized = xpurt.quantize(network, kind, **options)
    lost = accuracy(network, device) - accuracy(quantized, device)
    assert lost <= ACCURACY_POINTS


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("dynamic", {}),
        ("dynamic", {"smooth_quant": 0.5}),
        ("static", {}),
        ("static", {"smooth_quant": 0.5}),
        ("int8_weight_only", {}),
    ],
    ids=str,
)
def test_a_language_model_predicts_as_well(
    device: str, kind: str, options: dict[str, Any]
) -> None:
    model = copy.deepcopy(trained_gpt()).to(device)
    if kind != "int8_weight_only":
        options = {**options, "calibration": windows(device)}
    quantized = xpurt.quantize(model, kind, **options)
    assert _relative_loss(model, quantized, device) <= RELATIVE_LOSS


def test_four_bits_cost_a_small_model_more(device: str) -> None:
    """A model of a few thousand weights has none to spare: 1% is the limit here."""
    model = copy.deepcopy(trained_gpt()).to(device)
    quantized = xpurt.quantize(model, "int4_weight_only", group_size=32)
    assert _relative_loss(model, quantized, device) <= 0.01


def _relative_loss(model: nn.Module, quantized: nn.Module, device: str) -> float:
    before = loss_of(model, device)
    return loss_of(quantized, device) / before - 1
