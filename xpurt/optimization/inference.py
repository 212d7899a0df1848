"""A model for inference: its layers and the forwards of its modules, optimized each."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from xpurt import _C
from xpurt.optimization.comparison import difference_of
from xpurt.optimization.in_float64 import InFloat64
from xpurt.optimization.measured_forms import measures
from xpurt.optimization.module_classes import (
    LAYERS,
    RootSettings,
    is_optimized,
    may_change_class,
    optimize_class,
    optimize_root,
    restore_class,
)
from xpurt.optimization.module_state import begin_state, state_of
from xpurt.optimization.report import ModuleTime, Report
from xpurt.optimization.requested_form import as_written, optimized
from xpurt.quantization.in_plain_ops import QuantizedLayer

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
        report.times = _times(original, model, call)
    model.report = report  # type: ignore[assignment]
    return model


def _optimize_module(name: str, module: nn.Module, report: Report) -> None:
    kind = type(module)
    if isinstance(module, QuantizedLayer):
        return  # it has packed weights of its own
    if kind in LAYERS:
        if not may_change_class(module):
            report.left.append((name, "it has a forward of its own"))
        elif not _is_regular(module):
            report.left.append((name, "its padding is none that a primitive has"))
        else:
            optimize_class(module)
            begin_state(module, report, name)
            report.done.append((name, f"{kind.__name__}: weight packed"))
        return
    is_of_torch = kind.__module__.startswith("torch.nn.")
    quantized = any(isinstance(each, QuantizedLayer) for each in module.modules())
    has_layers = quantized or any(isinstance(each, LAYERS) for each in module.modules())
    has_parameters = quantized or next(module.parameters(), None) is not None
    if kind.forward is nn.Module.forward or not has_parameters:
        return
    if is_of_torch and not has_layers:
        return
    if may_change_class(module):
        optimize_class(module)
        begin_state(module, report, name)
    else:
        why = f"{kind.__name__} has a forward or copying of its own"
        report.left.append((name, why))


def _is_regular(layer: Any) -> bool:
    """Whether a primitive can have its padding: of zeros, by numbers."""
    return isinstance(layer, nn.Linear) or (
        layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    )


def _compare(
    model: nn.Module, settings: RootSettings, call: Call, report: Report
) -> None:
    """Takes all back if results differ by more than rounding."""
    with as_written():
        expected = call(model)
        _wait()  # an error of earlier work is none of what follows
        try:
            with InFloat64():
                exact = call(model)
        except Exception as error:  # whatever the user's code raises for the type
            report.left.append(("", f"it can't be compared in float64: {error}"))
            return
    if (why := _difference(model, call, (expected, exact))) is not None:
        for module in model.modules():
            if is_optimized(module):
                restore_class(module)
        optimize_root(model, settings)
        report.done.clear()
        report.left.append(("", why))
        return
    if any(isinstance(each, nn.Conv2d) for each in model.modules()):
        _take_channels_last(model, settings, call, (expected, exact), report)


def _wait() -> None:
    if torch.xpu.is_initialized():  # type: ignore[no-untyped-call]
        torch.xpu.synchronize()


def _difference(model: nn.Module, call: Call, results: tuple[Any, Any]) -> str | None:
    expected, exact = results
    with optimized():
        found = call(model)
    return difference_of(expected, found, exact)


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
    try:
        why = _difference(model, call, results)
    except Exception as error:  # as of a view that the layout does not allow
        why = str(error)
    if why is None:
        report.done.append(("", "images in channels_last"))
    else:
        optimize_root(model, settings)
        report.left.append(("", f"not in channels_last: {why}"))


def _times(original: nn.Module, model: nn.Module, call: Call) -> list[ModuleTime]:
    """Calls the model until it is known which form is faster; empty if nothing is
    measured."""
    if not measures():
        return []
    forms = state_of(model).forms
    for _ in range(_C.TwoForms.most_calls):
        call(model)
        if forms.is_decided:
            break
    took = forms.times_ms
    return [] if took is None else [ModuleTime("", type(original).__name__, *took)]
