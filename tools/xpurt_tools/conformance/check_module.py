"""One module in one dtype: forward, backward, and its buffers."""

import copy
import unittest
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from xpurt.testing import outcome
from xpurt_tools.conformance.databases import Entry
from xpurt_tools.conformance.gradients import (
    differentiable,
    gradients,
    leaves_that_require_grad,
)
from xpurt_tools.conformance.inputs import moved
from xpurt_tools.conformance.layouts import (
    OF_GRADIENTS,
    OF_GRADIENTS_OF_SUCH_INPUTS,
    NewRanks,
    Relayout,
    gradients_by_layout,
    of_inputs,
    values_alone,
)
from xpurt_tools.conformance.record import Record
from xpurt_tools.conformance.spread import spread
from xpurt_tools.conformance.tested_device import has_layouts
from xpurt_tools.conformance.tolerance import Tolerance, tolerance
from xpurt_tools.conformance.trial import CPU, Verdict, trial

Made = tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]


def check_module(
    entry: Entry, dtype: torch.dtype, record: Record, most_samples: int | None = None
) -> None:
    """Runs each of PyTorch's inputs for this module, in training and in evaluation."""
    allowed = tolerance(entry.info, dtype)
    ranks = NewRanks()
    for index, made in made_modules(entry, dtype, most_samples):
        _check_call("call", index, made, allowed, record)
        if not (ranks.has(made[1:]) and has_layouts()):
            continue
        variant = "gradients laid out otherwise"
        _check_call(variant, index, made, allowed, record, OF_GRADIENTS)
        layouts = OF_GRADIENTS_OF_SUCH_INPUTS
        for name, (args, kwargs) in of_inputs(made[1:]):
            there = made[0], args, kwargs
            _check_call(f"inputs {name}", index, there, allowed, record, layouts)
    if entry.info.module_error_inputs_func is not None and dtype is torch.float32:
        _check_errors(entry.info, record)


def _check_call(
    variant: str,
    index: int,
    made: Made,
    allowed: Tolerance,
    record: Record,
    layouts: Mapping[str, Relayout] | None = None,
) -> None:
    """Forward and backward. With `layouts`, gradients are also sent in these layouts,
    and the strides of the resulting gradients are not compared."""

    def prepare(device: torch.device) -> Made:
        module, args, kwargs = made
        there = copy.deepcopy(module).to(device)
        return there, *moved((args, kwargs), device)

    def body(made: Made) -> Any:
        module, args, kwargs = made
        result = module(*args, **kwargs)
        leaves = [
            *(p for p in module.parameters() if p.requires_grad),
            *leaves_that_require_grad((args, kwargs)),
        ]
        graph = differentiable(result)
        by_layout = {}
        if layouts is not None:
            by_layout = gradients_by_layout(graph, leaves, record.tiers, layouts)
        contiguous = gradients(graph, leaves, record.tiers)
        return {
            "result": result,
            "gradient sent": by_layout,
            "gradient": values_alone(contiguous) if layouts else contiguous,
            "state": dict(module.state_dict()),
            "argument": [
                leaf
                for leaf in tree_leaves((args, kwargs))
                if isinstance(leaf, torch.Tensor)
            ],
        }

    def run() -> Verdict:
        return trial(prepare, body, allowed, record.tiers)

    module, args, kwargs = made
    mode = "training" if module.training else "eval"
    record.attempt(variant, index, (repr(module), mode, args, kwargs), run)


def _check_errors(info: Any, record: Record) -> None:
    """Calls that raise on the CPU have to raise the same exception on xpu. PyTorch
    lists such inputs for one dtype."""
    torch.manual_seed(0)
    wrongs = info.module_error_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=False, training=True
    )
    for index, wrong in enumerate(wrongs):
        made, given = (
            wrong.module_error_input.constructor_input,
            wrong.module_error_input.forward_input,
        )

        def prepare(device: torch.device, given: Any = given) -> Any:
            inputs = (given.args, given.kwargs) if given is not None else ((), {})
            return device, *moved(inputs, device)

        def body(inputs: Any, made: Any = made) -> None:
            device, args, kwargs = inputs
            info.module_cls(*made.args, **made.kwargs).to(device)(*args, **kwargs)

        def run(prepare: Any = prepare, body: Any = body) -> Verdict:
            return trial(prepare, body, tolerance(info, torch.float32), record.tiers)

        record.attempt("error", index, (made, given), run)


def made_modules(
    entry: Entry,
    dtype: torch.dtype,
    most_samples: int | None = None,
    modes: tuple[bool, ...] = (True, False),
) -> Iterator[tuple[int, Made]]:
    """PyTorch's samples for this module, in training (True) and in evaluation, by
    position."""
    for index, (training, sample) in spread(
        _samples_of(entry.info, dtype, modes), most_samples
    ):
        made, error = outcome(_made_module, entry.info, sample, dtype, training)
        if error is None and made is not None:  # PyTorch can make it in this dtype
            yield index, made


def _samples_of(
    info: Any, dtype: torch.dtype, modes: tuple[bool, ...]
) -> Iterator[tuple[bool, Any]]:
    for training in modes:
        torch.manual_seed(0)
        try:
            for sample in info.module_inputs_func(
                info,
                device="cpu",
                dtype=dtype,
                requires_grad=dtype.is_floating_point or dtype.is_complex,
                training=training,
            ):
                if sample.forward_input is not None:
                    yield training, sample
        except unittest.SkipTest:
            return


def _made_module(info: Any, sample: Any, dtype: torch.dtype, training: bool) -> Made:
    torch.manual_seed(0)
    made, given = sample.constructor_input, sample.forward_input
    module = info.module_cls(*made.args, **made.kwargs).to(dtype).train(training)
    args, kwargs = moved((given.args, given.kwargs), CPU)
    if info.is_lazy:  # its parameters are made by the first call
        with torch.no_grad():
            module(*args, **kwargs)
    return module, given.args, given.kwargs
