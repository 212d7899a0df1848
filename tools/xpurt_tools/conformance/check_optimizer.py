"""One optimizer in one dtype: steps with each of its options and implementations."""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from xpurt_tools.conformance.databases import Entry
from xpurt_tools.conformance.inputs import moved
from xpurt_tools.conformance.record import Record
from xpurt_tools.conformance.spread import spread
from xpurt_tools.conformance.tolerance import tolerance
from xpurt_tools.conformance.trial import Verdict, trial

STEPS = 3
SHAPES = ((4, 3), (3, 5), (2, 2))  # two dimensions, as Muon requires

Options = dict[str, Any]


def check_optimizer(
    entry: Entry, dtype: torch.dtype, record: Record, most_samples: int | None = None
) -> None:
    """Each set of options, alone and with foreach, fused, differentiable, capturable.

    The CPU has no capturable, and takes its steps without it: the results are the same.
    """
    info = entry.info
    allowed = tolerance(info, dtype)
    parameters, drawn = _parameters(dtype), _gradients(dtype)
    if info.only_supports_sparse_grads:
        drawn = [[gradient.to_sparse() for gradient in step] for step in drawn]

    for index, options in spread(_options(info), most_samples):

        def prepare(
            device: torch.device, options: Options = options
        ) -> tuple[Any, Options]:
            given = copy.deepcopy(options)
            if device.type == "cpu" and given.get("capturable"):
                given = _not_captured(given)
            return moved((parameters, drawn), device), moved(given, device)

        def body(inputs: tuple[Any, Options]) -> Any:
            (mine, gradients), given = inputs
            for each in mine:
                each.requires_grad_()
            optimizer = info.optim_cls(mine, **given)
            for step in gradients:
                _step(optimizer, mine, step, info.step_requires_closure)
            return {
                "parameter": [each.detach() for each in mine],
                "state": [_numbers(optimizer.state[each]) for each in mine],
            }

        def run() -> Verdict:
            # Not all of an optimizer's state is on the device: the step count is on
            # the CPU.
            return trial(prepare, body, allowed, record.tiers, placed=False)

        record.attempt("call", index, options, run)
    if info.optim_error_inputs_func is not None and dtype is torch.float32:
        _check_errors(info, record)


def _check_errors(info: Any, record: Record) -> None:
    """Making an optimizer, or a step, that raises on the CPU has to raise the same
    exception on xpu. PyTorch lists such inputs for one dtype."""
    dtype = torch.float32
    for index, wrong in enumerate(info.optim_error_inputs_func("cpu", dtype)):
        given = wrong.optimizer_error_input

        def prepare(device: torch.device, given: Any = given) -> Any:
            mine = _parameters(dtype) if given.params is None else given.params
            return moved((mine, _gradients(dtype)[0]), device), dict(given.kwargs)

        def body(inputs: Any) -> None:
            (mine, gradients), kwargs = inputs
            for each in tree_leaves(mine):
                if isinstance(each, torch.Tensor):
                    each.requires_grad_()
            optimizer = info.optim_cls(mine, **kwargs)
            held = [
                each for group in optimizer.param_groups for each in group["params"]
            ]
            _step(optimizer, held, gradients[: len(held)], info.step_requires_closure)

        def run(prepare: Any = prepare) -> Verdict:
            return trial(prepare, body, tolerance(info, dtype), record.tiers)

        record.attempt("error", index, given.desc, run)


def _options(info: Any) -> Iterator[Options]:
    """The options for "xpu": PyTorch lists capturable only for such devices."""
    for sample in info.optim_inputs_func("xpu"):
        plain = {**sample.kwargs, **dict.fromkeys(info.supported_impls, False)}
        yield _on_cpu(plain)
        for implementation in info.supported_impls:
            yield _on_cpu({**plain, implementation: True})


def _not_captured(options: Options) -> Options:
    """The options without capturable; foreach then requires a number as the rate."""
    numbers: Options = tree_map(
        lambda leaf: leaf.item() if isinstance(leaf, torch.Tensor) else leaf, options
    )
    return {**numbers, "capturable": False}


def _on_cpu(options: Options) -> Options:
    on_cpu: Options = tree_map(
        lambda leaf: leaf.cpu() if isinstance(leaf, torch.Tensor) else leaf, options
    )
    return on_cpu


def _step(
    optimizer: Any, parameters: list[Any], gradients: list[Any], closure: bool
) -> None:
    def again() -> torch.Tensor:
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient.clone()
        return torch.stack([p.detach().abs().sum() for p in parameters]).sum()

    if closure:
        optimizer.step(again)
    else:
        again()
        optimizer.step()


def _numbers(state: dict[str, Any]) -> dict[str, Any]:
    """The state of one parameter; its step as a number, since its device may differ."""
    return {
        name: float(value) if name == "step" else value for name, value in state.items()
    }


def _parameters(dtype: torch.dtype) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    return [_drawn(shape, dtype, draw) for shape in SHAPES]


def _gradients(dtype: torch.dtype) -> list[list[torch.Tensor]]:
    draw = torch.Generator().manual_seed(1)
    return [[_drawn(shape, dtype, draw) for shape in SHAPES] for _ in range(STEPS)]


def _drawn(
    shape: tuple[int, ...], dtype: torch.dtype, draw: torch.Generator
) -> torch.Tensor:
    wide = torch.complex64 if dtype.is_complex else torch.float32
    return torch.randn(shape, generator=draw, dtype=wide).to(dtype)
