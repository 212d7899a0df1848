"""Scales of activations, from calibration."""

import importlib
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from xpurt.quantization.calibration import Calibration, inputs_seen

# The classes of torch.ao.quantization.observer, which is imported on demand.
OBSERVERS = {"minmax": "MinMaxObserver", "histogram": "HistogramObserver"}


def activation_scales(
    model: nn.Module,
    layers: Mapping[str, nn.Module],
    calibration: Calibration,
    observer: str,
) -> dict[str, tuple[Tensor, Tensor]]:
    """The scale and the zero point of each layer's input; layers that no input of the
    calibration reaches are missing.

    observer: of `torch.ao.quantization`. "minmax" takes the whole range that was seen,
        "histogram" the one with the smallest squared error.
    """
    module = importlib.import_module("torch.ao.quantization.observer")
    make = getattr(module, OBSERVERS[observer])
    observers: dict[str, nn.Module] = {}

    def see(name: str, x: Tensor) -> None:
        if name not in observers:
            made = make(dtype=torch.quint8, quant_min=0, quant_max=255)
            observers[name] = made.to(x.device)
        observers[name](x.detach().float())

    with inputs_seen(layers, see):
        calibration.run(model, "calibrate")
    return {name: _parameters(each) for name, each in observers.items()}


def _parameters(observer: nn.Module) -> tuple[Tensor, Tensor]:
    scale, zero_point = observer.calculate_qparams()  # type: ignore[operator]
    return scale.float().reshape(1), zero_point.long().reshape(1)


def largest_magnitudes(
    model: nn.Module, layers: Mapping[str, nn.Module], calibration: Calibration
) -> dict[str, Tensor]:
    """The largest magnitude in each channel, the last dimension, of each layer's input."""
    largest: dict[str, Tensor] = {}

    def see(name: str, x: Tensor) -> None:
        found = x.detach().float().abs().flatten(0, -2).amax(0)
        before = largest.get(name)
        largest[name] = found if before is None else torch.maximum(before, found)

    with inputs_seen(layers, see):
        calibration.run(model, "smooth")
    return largest
