"""`quantize`: a model with quantized layers in the places of others."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from xpurt.arguments import check_flag, wrong_type
from xpurt.quantization.activations import activation_scales, largest_magnitudes
from xpurt.quantization.calibration import Calibration, Links, links_of
from xpurt.quantization.folding import (
    Fold,
    batch_norm_folds,
    relu_folds,
    smooth_folds,
    try_folds,
)
from xpurt.quantization.layers import (
    Int4WeightLinear,
    Int8Convolution,
    Int8Linear,
    Int8WeightLinear,
    QuantizedLayer,
)
from xpurt.quantization.report import LayerReport, QuantizationReport
from xpurt.quantization.scheme import CONVOLUTIONS, Scheme, checked

Module = TypeVar("Module", bound=nn.Module)

# Layers with weights that are known not to be handled.
_OTHERS = (
    nn.MultiheadAttention,
    nn.RNNBase,
    nn.RNNCellBase,
    nn.Embedding,
    nn.EmbeddingBag,
    nn.Bilinear,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)


def quantize(
    model: Module,
    kind: str,
    *,
    calibration: Iterable[Any] | None = None,
    group_size: int = 64,
    smooth_quant: float | None = None,
    observer: str = "minmax",
    skip: Iterable[str] = (),
    inplace: bool = False,
) -> Module:
    """The model with quantized layers in the places of its linear layers and
    convolutions, for inference on the CPU and on xpu.

    model: in eval mode, with all tensors on the CPU or on one xpu device.
    kind: one of these:

        - "dynamic": int8 weights with a scale per output channel, and activations in 8
          bits, with a scale for each row of the input of a linear layer, and for the
          whole input of a convolution.
        - "static": the same with scales of activations from `calibration`.
        - "int8_weight_only": linear layers with int8 weights; activations stay.
        - "int4_weight_only": linear layers with weights in 4 bits, each `group_size`
          inputs with a scale and a minimum of their own.

    calibration: inputs of the model: tensors, tuples of arguments or mappings of named
        ones. If it is given, batch norms and `nn.ReLU` are folded into the convolutions
        before them.
    group_size: a multiple of 16. Layers whose inputs it does not divide stay.
    smooth_quant: alpha of SmoothQuant (Xiao and others, 2022), from 0 to 1: layer norms
        and RMS norms take over scales from the linear layers behind them. Needs
        `calibration`.
    observer: for the ranges of static activations: "minmax" or "histogram".
    skip: names of layers that stay, as of `named_modules()`.
    inplace: change the model itself, and not a copy.

    Returns the model; `model.quantization_report` is a `QuantizationReport`, which
    names each layer that was replaced, and says why others stayed. The result can be
    copied, pickled, moved and compiled, and its state_dict loaded into another one that
    was quantized in the same way. It computes no gradients.

    Raises TypeError for arguments of a wrong type. Raises ValueError for a wrong kind or
    number, a model in training mode, on several devices or quantized already, for a
    calibration that is missing, empty or on another device, and if no layer can be
    quantized.
    """
    scheme = checked(kind, group_size, smooth_quant, observer, skip)
    check_flag("quantize(inplace=)", inplace)
    device = _checked_device(model)
    if calibration is None and scheme.needs_calibration():
        raise ValueError(
            f"quantize() wants calibration= for {scheme.needs_calibration()}; found "
            'none. Give some batches of what the model will see, or take kind "dynamic".'
        )
    inputs = None if calibration is None else Calibration(calibration, device)
    _check_skip(model, scheme)
    # Buffers that are made in inference mode could not be changed outside of it.
    with torch.inference_mode(False), torch.no_grad():
        quantized = model if inplace else copy.deepcopy(model)
        return _quantize(quantized, scheme, inputs)


def _checked_device(model: nn.Module) -> torch.device:
    """The device of the model's tensors. Raises as `quantize` does."""
    if not isinstance(model, nn.Module):
        raise wrong_type(
            "quantize()", "a module", model, "Give an nn.Module in eval mode."
        )
    if model.training:
        raise ValueError(
            "quantize() wants a model in eval mode; found one in training mode. Call "
            "model.eval() first."
        )
    if any(isinstance(module, QuantizedLayer) for module in model.modules()):
        raise ValueError(
            "quantize() wants a model in floating point; this one is quantized already. "
            "Quantize the original."
        )
    devices = {tensor.device for tensor in [*model.parameters(), *model.buffers()]}
    if len(devices) > 1:
        found = ", ".join(sorted(map(str, devices)))
        raise ValueError(
            f"quantize() wants a model on one device; found tensors on {found}. Move it "
            'by .to("cpu") or .to("xpu").'
        )
    device = next(iter(devices), torch.device("cpu"))
    if device.type not in ("cpu", "xpu"):
        raise ValueError(
            f"quantize() wants a model on the CPU or on xpu; found {device}. Move it by "
            '.to("cpu") or .to("xpu").'
        )
    return device


def _check_skip(model: nn.Module, scheme: Scheme) -> None:
    known = {name for name, _ in model.named_modules(remove_duplicate=False)}
    unknown = sorted(scheme.skip - known)
    if unknown:
        raise ValueError(
            f"quantize(skip=) wants names of the model's modules; found {unknown}. "
            "model.named_modules() has them."
        )


def _quantize(model: Module, scheme: Scheme, calibration: Calibration | None) -> Module:
    kept: dict[str, str] = {}  # the reason of each layer that stays
    chosen: dict[str, nn.Module] = {}
    for name, layer in _layers(model):
        reason = scheme.reason_to_keep(name, layer)
        if reason:
            kept[name] = reason
        else:
            chosen[name] = layer
    _check_any(chosen, kept)
    links = Links()
    if calibration is not None:
        links = links_of(model, calibration)
        # A layer that is never called may have its weight read by its parent.
        for name in [name for name in chosen if name not in links.calls]:
            kept[name] = "it was not called in the calibration"
            del chosen[name]
        _check_any(chosen, kept)
    folded = _fold(model, scheme, calibration, links, chosen)
    scales: dict[str, tuple[Tensor, Tensor]] = {}
    if scheme.kind == "static":
        assert calibration is not None
        scales = activation_scales(model, chosen, calibration, scheme.observer)
        for name in [name for name in chosen if name not in scales]:
            kept[name] = "it was not called in the calibration"
            del chosen[name]
    notes = _notes(folded)
    rectified = {name for fold in folded if fold.is_relu for name in fold.into}
    made = {
        name: _quantized(layer, scheme, scales.get(name), name in rectified)
        for name, layer in chosen.items()
    }
    report = QuantizationReport(
        scheme.kind,
        tuple(
            LayerReport(
                name,
                type(layer).__name__,
                type(made[name]).__name__ if name in made else "",
                kept.get(name) or notes.get(name, ""),
            )
            for name, layer in [*_layers(model)]
        )
        + tuple(
            LayerReport(name, type(module).__name__, "", "it is not quantized by xpurt")
            for name, module in model.named_modules()
            if isinstance(module, _OTHERS)
        ),
    )
    result: Module = with_layers(model, {id(chosen[name]): made[name] for name in made})
    result.quantization_report = report  # type: ignore[assignment]
    return result


def _layers(model: nn.Module) -> list[tuple[str, nn.Module]]:
    return [
        (name, module)
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d)
    ]


def _check_any(chosen: dict[str, nn.Module], kept: dict[str, str]) -> None:
    if chosen:
        return
    why = "; ".join(f"{name or 'the model'}: {reason}" for name, reason in kept.items())
    raise ValueError(
        "quantize() found no layer that it can quantize"
        f"{f' ({why})' if why else ''}. It replaces nn.Linear and nn.Conv1d, 2d and 3d."
    )


def _fold(
    model: nn.Module,
    scheme: Scheme,
    calibration: Calibration | None,
    links: Links,
    chosen: dict[str, nn.Module],
) -> list[Fold]:
    """Does what can be folded into the chosen layers, and returns it."""
    if calibration is None or not scheme.with_activations:
        return []
    linear = {n: layer for n, layer in chosen.items() if isinstance(layer, nn.Linear)}
    images = [n for n, layer in chosen.items() if isinstance(layer, CONVOLUTIONS)]
    done = try_folds(model, batch_norm_folds(model, links, images), calibration)
    if done:
        links = links_of(model, calibration)
    done += try_folds(model, relu_folds(model, links, images), calibration)
    if scheme.smooth_quant is not None:
        largest = largest_magnitudes(model, linear, calibration)
        folds = smooth_folds(model, links, linear, largest, scheme.smooth_quant)
        done += try_folds(model, folds, calibration)
    return done


def _notes(folded: list[Fold]) -> dict[str, str]:
    notes: dict[str, str] = {}
    for fold in folded:
        for name in fold.into:
            notes[name] = (
                f"{notes[name]}, {fold.layer}" if name in notes else fold.layer
            )
    return {name: f"with {layers}" for name, layers in notes.items()}


def _quantized(
    layer: nn.Module,
    scheme: Scheme,
    scales: tuple[Tensor, Tensor] | None,
    relu: bool,
) -> QuantizedLayer:
    scale, zero_point = scales or (None, None)
    made: QuantizedLayer
    if isinstance(layer, CONVOLUTIONS):
        made = Int8Convolution(layer, scale, zero_point, relu=relu)
    else:
        assert isinstance(layer, nn.Linear)
        if scheme.kind == "int8_weight_only":
            made = Int8WeightLinear(layer)
        elif scheme.kind == "int4_weight_only":
            made = Int4WeightLinear(layer, scheme.group_size)
        else:
            made = Int8Linear(layer, scale, zero_point)
    return made.eval()


def with_layers(model: Module, made: Mapping[int, nn.Module]) -> Any:
    """Puts layers in the places of those with these ids, also in several: a layer may be
    shared. Returns the model, or what takes its own place."""
    if id(model) in made:
        return made[id(model)]
    for parent in list(model.modules()):
        for name, child in list(parent._modules.items()):
            if id(child) in made:
                parent.add_module(name, made[id(child)])
        _leave_fused_path(parent)
    return model


def _leave_fused_path(module: nn.Module) -> None:
    """PyTorch's encoder has an op for a whole layer, which reads the weights in floating
    point. What switches that op off in a layer that it does not support, does it here.
    """
    if isinstance(module, nn.TransformerEncoderLayer):
        module.activation_relu_or_gelu = 0
    elif isinstance(module, nn.TransformerEncoder):
        module.use_nested_tensor = False
