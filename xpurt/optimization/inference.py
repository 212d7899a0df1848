"""A model for inference: its layers and the forwards of its modules, optimized each."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from xpurt.optimization import fused_layers
from xpurt.optimization.comparison import Comparison, comparing, distance_of
from xpurt.optimization.fused_forward import FusedForward
from xpurt.optimization.joined_linears import join_linears
from xpurt.optimization.module_classes import (
    LAYERS,
    RootSettings,
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
        _drop_what_differs(model, call, report)
        _take_channels_last(model, settings, call, report)
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


def _drop_what_differs(model: nn.Module, call: Call, report: Report) -> None:
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


def _take_channels_last(
    model: nn.Module, settings: RootSettings, call: Call, report: Report
) -> None:
    """For images, which is the layout of packed weights, if the model computes the same
    in it."""
    if not any(isinstance(each, nn.Conv2d) for each in model.modules()):
        return
    expected = call(model)
    optimize_root(model, replace(settings, channels_last=True))
    try:
        same = _same(expected, call(model))
        why = "the results differ"
    except Exception as error:  # as of a view that the layout does not allow
        same, why = False, str(error)
    if same:
        report.done.append(("", "images in channels_last"))
    else:
        optimize_root(model, settings)
        report.left.append(("", f"not in channels_last: {why}"))


def _same(expected: Any, found: Any) -> bool:
    pairs = zip(pytree.tree_leaves(expected), pytree.tree_leaves(found), strict=True)
    return all(distance_of(a, b) is None for a, b in pairs if isinstance(a, Tensor))
