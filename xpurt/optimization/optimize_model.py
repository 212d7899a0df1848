"""`xpurt.optimize`."""

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final, overload

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from xpurt.optimization.inference import optimize_for_inference
from xpurt.optimization.module_classes import is_optimized
from xpurt.optimization.primitives import types_of_cpu
from xpurt.optimization.report import Report
from xpurt.optimization.training.optimize_training import optimize_for_training

_TYPES: Final = (torch.float32, torch.bfloat16, torch.float16)
Sample = Tensor | tuple[Any, ...] | Mapping[str, Any]


@overload
def optimize(
    model: nn.Module,
    *,
    optimizer: None = None,
    dtype: torch.dtype | None = None,
    sample_input: Sample | None = None,
    inplace: bool = False,
) -> nn.Module: ...
@overload
def optimize(
    model: nn.Module,
    *,
    optimizer: Optimizer,
    dtype: torch.dtype | None = None,
    inplace: bool = False,
) -> tuple[nn.Module, Optimizer]: ...
def optimize(
    model: nn.Module,
    *,
    optimizer: Optimizer | None = None,
    dtype: torch.dtype | None = None,
    sample_input: Sample | None = None,
    inplace: bool = False,
) -> nn.Module | tuple[nn.Module, Optimizer]:
    """A model that computes the same in less time, for tensors of the CPU and of xpu.

    In calls without gradients, batch norms in evaluation mode are folded into the
    convolutions before them, and convolutions and linear layers are one primitive with
    the addition and the activation that follow. Weights are packed once per version of
    the parameters. The graph comes from Dynamo, whose guards are checked in each call.
    Any other call (with gradients, under `torch.compile`) runs as written. The first calls
    measure both forms, and the faster one stays. Parameters and their names stay:
    `state_dict` loads both ways, and new values are seen.

    optimizer: the model is for training instead, and is in training mode: parameters of
    its layers become bfloat16, the optimizer keeps the 16 bits that are missing to
    float32 and updates float32 values, and its step is a fused one where that can be.
    dtype: None, as the model; or float32, bfloat16, float16: each call then runs under
    `torch.autocast` of that type. Parameters keep theirs.
    sample_input: what one call takes: a tensor, a tuple of arguments, or a dict of
    arguments by name. With it the model is compared with the original, and left as it
    was if it differs by more than rounding; images are processed in channels_last, the
    layout of packed weights of convolutions, if the model computes the same in it; and
    both forms are measured, which calls the model up to 48 times and fills
    `report.times`.
    inplace: changes the model instead of a copy.

    Returns the model, or the model and the optimizer. The model's attribute `report`
    says what was done, what was left as it is, and why.

    Raises TypeError for what is no model, and ValueError for a model in the other mode,
    one that is optimized already, a dtype that this processor does not compute, a
    sample that the model does not take, or an optimizer of other parameters or of a
    kind whose step can't be split.
    """
    if optimizer is not None:
        return _for_training(model, optimizer, dtype, sample_input, inplace)
    _check_model(model)
    _check_dtype(model, dtype)
    if model.training:
        raise ValueError(
            "an optimized model was requested for inference, and this one is in training "
            "mode: call model.eval() first"
        )
    call = None if sample_input is None else _call_of(model, sample_input)
    if not inplace:
        original, model = model, copy.deepcopy(model)
    else:
        original = copy.deepcopy(model) if call is not None else model
    return optimize_for_inference(original, model, dtype, call)


def _for_training(
    model: nn.Module,
    optimizer: Optimizer,
    dtype: torch.dtype | None,
    sample_input: Sample | None,
    inplace: bool,
) -> tuple[nn.Module, Optimizer]:
    if sample_input is not None:
        raise ValueError(
            "sample_input is for inference, and an optimizer was given too: leave one out"
        )
    model, optimizer, done = optimize_for_training(model, optimizer, dtype, inplace)
    model.report = Report(done)  # type: ignore[assignment]
    return model, optimizer


def _check_model(model: nn.Module) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(f"a torch.nn.Module is optimized; found {type(model).__name__}")
    if isinstance(model, torch.jit.ScriptModule):
        raise TypeError(
            "a scripted model has no Python to be optimized: pass the torch.nn.Module "
            "that it was made of"
        )
    if hasattr(model, "_orig_mod"):
        raise TypeError(
            "a compiled model was given: optimize the model first, and compile what "
            "xpurt.optimize returns"
        )
    if any(is_optimized(each) for each in model.modules()):
        raise ValueError(
            "the model is optimized already: pass the one that it was made of"
        )


def _check_dtype(model: nn.Module, dtype: torch.dtype | None) -> None:
    if dtype is None:
        return
    if dtype not in _TYPES:
        raise ValueError(
            f"dtype is float32, bfloat16 or float16; found {dtype}. For integers, see "
            "xpurt.quantize"
        )
    on_cpu = any(each.device.type == "cpu" for each in model.parameters())
    if on_cpu and dtype not in types_of_cpu():
        names = ", ".join(str(each).removeprefix("torch.") for each in types_of_cpu())
        raise ValueError(
            f"dtype={dtype} was requested, and oneDNN computes {names} on this processor: "
            "choose one of these"
        )


def _call_of(model: nn.Module, sample: Sample) -> Callable[[nn.Module], Any]:
    """Calls a model with the sample. Raises ValueError if the model does not take it."""

    by_name = dict(sample) if isinstance(sample, Mapping) else {}
    args: tuple[Any, ...] = ()
    if not isinstance(sample, Mapping):
        args = sample if isinstance(sample, tuple) else (sample,)

    def call(model: nn.Module) -> Any:
        with torch.no_grad():
            return model(*args, **by_name)

    try:
        call(model)
    except Exception as error:  # whatever the model raises
        named = {name: _shown(each) for name, each in by_name.items()}
        given = named or [_shown(each) for each in args]
        raise ValueError(
            f"the model does not take sample_input ({given}): {error}. Pass what one call "
            "of the model takes, on its device"
        ) from error
    return call


def _shown(x: Any) -> str:
    if isinstance(x, Tensor):
        return f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)} on {x.device}"
    return type(x).__name__
