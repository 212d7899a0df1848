"""Layers whose work the layer before or behind them takes over, before quantization.

Note [Folds are tried]
~~~~~~~~~~~~~~~~~~~~~~
A fold is right if the tensor between two layers goes nowhere else. A model may be any
Python code, so that is not read from it: the model runs over the first calibration input
before and after a fold, and a fold that changes the result is undone. All folds are
tried together, and one by one only if the result has changed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from xpurt.functional.convolutions import BatchNorm, folded
from xpurt.quantization.calibration import Calibration, Links

TOLERANCE = 1e-3  # of the largest magnitude of a result

_NORMS_OF_IMAGES = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@dataclass
class Fold:
    """A change of two or more layers that should not change the model's result.

    layer: the name of the layer that goes, or of the norm that is changed.
    into: the names of the layers that take over.
    """

    layer: str
    into: list[str]
    do: Callable[[], None]
    undo: Callable[[], None]
    is_relu: bool = False


def try_folds(
    model: nn.Module, folds: Sequence[Fold], calibration: Calibration
) -> list[Fold]:
    """Does the folds that leave the model's result as it is, and returns them."""
    if not folds:
        return []
    before = _result(model, calibration)
    if _all_hold(model, folds, calibration, before):
        return list(folds)
    return [fold for fold in folds if _all_hold(model, [fold], calibration, before)]


def _all_hold(
    model: nn.Module,
    folds: Sequence[Fold],
    calibration: Calibration,
    before: list[Tensor],
) -> bool:
    for fold in folds:
        fold.do()
    if _are_close(before, _result(model, calibration)):
        return True
    for fold in reversed(folds):
        fold.undo()
    return False


def _result(model: nn.Module, calibration: Calibration) -> list[Tensor]:
    leaves = tree_leaves(calibration.run_first(model))
    return [leaf.detach().float() for leaf in leaves if isinstance(leaf, Tensor)]


def _are_close(before: Iterable[Tensor], after: Iterable[Tensor]) -> bool:
    for old, new in zip(before, after, strict=True):
        if old.numel() == 0:
            continue
        error, size = (old - new).abs().max(), old.abs().max()
        if not bool(error <= TOLERANCE * size):
            return False
    return True


def batch_norm_folds(
    model: nn.Module, links: Links, layers: Iterable[str]
) -> list[Fold]:
    """Batch norms that follow one of these convolutions."""
    folds = []
    for name, norm in model.named_modules():
        before = links.before.get(name, "")
        if (
            type(norm) in _NORMS_OF_IMAGES
            and before in layers
            and norm.running_mean is not None
            and links.calls[name] == links.calls[before] == 1
        ):
            folds.append(_batch_norm_fold(model, before, name))
    return folds


def _batch_norm_fold(model: nn.Module, layer_name: str, norm_name: str) -> Fold:
    layer: Any = model.get_submodule(layer_name)
    norm: Any = model.get_submodule(norm_name)
    old = layer.weight, layer.bias

    def do() -> None:
        statistics = norm.running_mean, norm.running_var
        made = folded(*old, BatchNorm(*statistics, norm.weight, norm.bias, norm.eps))
        layer.weight, layer.bias = (
            nn.Parameter(each.to(old[0].dtype)) for each in made
        )
        model.set_submodule(norm_name, nn.Identity())

    def undo() -> None:
        layer.weight, layer.bias = old
        model.set_submodule(norm_name, norm)

    return Fold(norm_name, [layer_name], do, undo)


def relu_folds(model: nn.Module, links: Links, layers: Iterable[str]) -> list[Fold]:
    """Modules `nn.ReLU` that follow one of these convolutions."""
    return [
        _relu_fold(model, links.before[name], name)
        for name, module in model.named_modules()
        if type(module) is nn.ReLU
        and links.before.get(name, "") in layers
        and links.calls[name] == links.calls[links.before[name]] == 1
    ]


def _relu_fold(model: nn.Module, layer_name: str, relu_name: str) -> Fold:
    layer, relu = model.get_submodule(layer_name), model.get_submodule(relu_name)
    handles: list[Any] = []

    def do() -> None:
        # The hook goes with the layer, which a quantized one replaces.
        handles.append(layer.register_forward_hook(lambda _, __, x: torch.relu(x)))
        model.set_submodule(relu_name, nn.Identity())

    def undo() -> None:
        handles.pop().remove()
        model.set_submodule(relu_name, relu)

    return Fold(relu_name, [layer_name], do, undo, is_relu=True)


def smooth_folds(
    model: nn.Module,
    links: Links,
    layers: Iterable[str],
    largest: dict[str, Tensor],
    alpha: float,
) -> list[Fold]:
    """Norms whose result only linear layers get: the norm's channels are divided by
    scales, and the columns of the layers' weights multiplied by them (SmoothQuant, Xiao
    and others, 2022). A scale is max|x|^alpha / max|w|^(1 - alpha).
    """
    consumers: dict[str, list[str]] = {}
    for layer in layers:
        norm = links.before.get(layer, "")
        if norm and isinstance(model.get_submodule(norm), nn.LayerNorm | nn.RMSNorm):
            consumers.setdefault(norm, []).append(layer)
    return [
        _smooth_fold(model, norm, found, largest[found[0]], alpha)
        for norm, found in consumers.items()
        if getattr(model.get_submodule(norm), "weight", None) is not None
        and all(layer in largest for layer in found)
    ]


def _smooth_fold(
    model: nn.Module, norm_name: str, names: list[str], of_x: Tensor, alpha: float
) -> Fold:
    norm: Any = model.get_submodule(norm_name)
    layers: list[Any] = [model.get_submodule(name) for name in names]
    of_w = torch.stack(
        [layer.weight.detach().float().abs().amax(0) for layer in layers]
    )
    scale = of_x.pow(alpha) / of_w.amax(0).clamp_min(1e-5).pow(1 - alpha)
    scale = torch.where(scale.isfinite() & (scale > 1e-5), scale, 1.0)
    bias = getattr(norm, "bias", None)
    old = norm.weight, bias, [layer.weight for layer in layers]

    def changed(tensor: Tensor, factor: Tensor) -> nn.Parameter:
        return nn.Parameter((tensor.detach() * factor).to(tensor.dtype))

    def do() -> None:
        norm.weight = changed(norm.weight, 1 / scale)
        if bias is not None:
            norm.bias = changed(bias, 1 / scale)
        for layer in layers:
            layer.weight = changed(layer.weight, scale)

    def undo() -> None:
        norm.weight = old[0]
        if bias is not None:
            norm.bias = bias
        for layer, weight in zip(layers, old[2], strict=True):
            layer.weight = weight

    return Fold(norm_name, names, do, undo)
