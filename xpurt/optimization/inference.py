"""A model for inference: its layers and the forwards of its modules, optimized each."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from xpurt.optimization import fused_layers
from xpurt.optimization.comparison import (
    Comparison,
    as_written,
    comparing,
    difference_of,
)
from xpurt.optimization.fused_forward import FusedForward
from xpurt.optimization.in_float64 import InFloat64
from xpurt.optimization.joined_linears import join_linears
from xpurt.optimization.module_classes import (
    LAYERS,
    RootSettings,
    is_optimized,
    may_change_class,
    optimize_class,
    optimize_root,
    original_class,
    restore_class,
)
from xpurt.optimization.own_forward import NotTraceable
from xpurt.optimization.report import Report, times_of

Call = Callable[[nn.Module], Any]


def optimize_for_inference(
    original: nn.Module, model: nn.Module, dtype: torch.dtype | None, call: Call | None
) -> nn.Module:
    """Changes `model`. call: calls a model with the sample."""
    report = Report()
    settings = RootSettings(dtype)
    for name, module in list(model.named_modules()):
        _optimize_module(name, module, report)
    optimize_root(model, settings)
    if call is not None:
        _compare(model, settings, call, report)
        report.times = times_of(original, model, call)
    model.report = report  # type: ignore[assignment]
    return model


def _optimize_module(name: str, module: nn.Module, report: Report) -> None:
    kind = type(module)
    if kind in LAYERS:
        if not may_change_class(module):
            report.left.append((name, "it has a forward of its own"))
        elif kind is not nn.Linear and not fused_layers.is_regular(module):  # type: ignore[arg-type]
            report.left.append((name, "its padding is none that a primitive has"))
        else:
            optimize_class(module)
            report.done.append((name, f"{kind.__name__}: weight packed"))
        return
    own = any(True for _ in module.parameters(recurse=False))
    has_layers = any(isinstance(each, LAYERS) for each in module.children())
    if kind.forward is nn.Module.forward or (_is_of_torch(kind) and not has_layers):
        return
    rows, members, why = _fuse(module)
    if not _is_of_torch(kind):
        for first, *others in join_linears(module, members):
            rows.append((first, f"one product with {' and '.join(others)}"))
    if not rows and own and not _is_of_torch(kind):
        why = f"{kind.__name__} is no layer that a primitive has"
    if why and not rows and (own or has_layers):
        report.left.append((name, why))
    report.done += [(_below(name, layer), f"fused: {what}") for layer, what in rows]


def _fuse(module: nn.Module) -> tuple[list[tuple[str, str]], set[str], str]:
    """The layers in the module's own forward and what they were fused to, and the names
    of the modules that it no longer calls; or why nothing could be."""
    kind = type(module)
    if not may_change_class(module):
        return [], set(), f"{kind.__name__} has a forward or copying of its own"
    optimize_class(module)
    try:
        made = FusedForward(module, original_class)
    except NotTraceable as why:
        restore_class(module)
        return [], set(), f"{kind.__name__}: nothing fused across it; {why}"
    if not made.rows:
        restore_class(module)
    return made.rows, made.members, ""


def _is_of_torch(kind: type[nn.Module]) -> bool:
    return kind.__module__.startswith("torch.nn.")


def _below(name: str, layer: str) -> str:
    return ".".join(each for each in (name, layer) if each)


def _compare(
    model: nn.Module, settings: RootSettings, call: Call, report: Report
) -> None:
    """Takes back what makes results differ by more than rounding."""
    compared = Comparison()
    with comparing(compared):
        call(model)
    for name, module in model.named_modules():
        if module in compared.failures:
            made = FusedForward(module, original_class)
            rows = {
                (_below(name, layer), f"fused: {what}") for layer, what in made.rows
            }
            report.done = [row for row in report.done if row not in rows]
            report.left.append((name, compared.failures[module]))
            restore_class(module)
    with as_written():
        expected = call(model)
        try:
            with InFloat64():
                exact = call(model)
        except Exception as error:  # whatever the user's code raises for the type
            report.left.append(("", f"it can't be compared in float64: {error}"))
            return
    if (why := difference_of(expected, call(model), exact)) is not None:
        for module in model.modules():
            if is_optimized(module):
                restore_class(module)
        optimize_root(model, settings)
        report.done.clear()
        report.left.append(("", why))
    elif any(isinstance(each, nn.Conv2d) for each in model.modules()):
        _take_channels_last(model, settings, call, (expected, exact), report)


def _take_channels_last(
    model: nn.Module,
    settings: RootSettings,
    call: Call,
    results: tuple[Any, Any],
    report: Report,
) -> None:
    """For images, which is the layout of packed weights, if the model computes the same
    in it. results: as written, and in float64."""
    optimize_root(model, replace(settings, channels_last=True))
    expected, exact = results
    try:
        why = difference_of(expected, call(model), exact)
    except Exception as error:  # as of a view that the layout does not allow
        why = str(error)
    if why is None:
        report.done.append(("", "images in channels_last"))
    else:
        optimize_root(model, settings)
        report.left.append(("", f"not in channels_last: {why}"))
