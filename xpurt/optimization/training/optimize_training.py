"""Training with bfloat16 parameters whose float32 values are kept.

See Note [Split parameters] and Note [Steps in float32].
"""

import copy

import torch
from torch import nn
from torch.optim import Optimizer

from xpurt.arguments import check_type
from xpurt.optimization.module_classes import is_optimized, may_change_class
from xpurt.optimization.training.fused_optimizers import reason_against_fused, use_fused
from xpurt.optimization.training.split_optimizer import (
    KINDS,
    SplitOptimizer,
    split_optimizer,
)
from xpurt.optimization.training.split_parameters import (
    parameters_to_split,
    split_parameters,
)
from xpurt.optimization.training.training_forward import (
    TrainedInBfloat16,
    run_under_autocast,
)

_NAME_OF_OPTIMIZER = "optimizer"


def optimize_for_training(
    model: nn.Module,
    optimizer: Optimizer,
    dtype: torch.dtype | None = torch.bfloat16,
    inplace: bool = False,
) -> tuple[nn.Module, Optimizer, list[tuple[str, str]]]:
    """The model and its optimizer, and what was done: qualified names, each with a phrase.

    dtype: with bfloat16, parameters of linear layers, convolutions and embeddings are
    bfloat16 with 16 bits beside them, so that the optimizer updates float32 values, and
    forward runs under autocast. With float32 or None, only the optimizer's step becomes
    a fused one, where it can. inplace: change both and return them; else copies, of
    which the optimizer trains the model.

    Raises TypeError for arguments of other types and for parameters that can't be split,
    and ValueError for a dtype, a model or an optimizer that it can't do this with.
    """
    _check_types(model, optimizer)
    if dtype not in (torch.bfloat16, torch.float32, None):
        raise ValueError(
            f"training wants dtype=torch.bfloat16, torch.float32 or None; found {dtype}. "
            "Only bfloat16 has the exponents of float32, so that the parameters can be "
            "split into it and 16 bits more. Use torch.bfloat16."
        )
    _check(model, optimizer, splits=dtype == torch.bfloat16)
    if not inplace:
        model, optimizer = copy.deepcopy((model, optimizer))
    against = reason_against_fused(model, optimizer)
    done = []
    if dtype == torch.bfloat16:
        splits = split_parameters(parameters_to_split(model, optimizer))
        done = [
            (name, "bfloat16, and 16 bits beside it")
            for name, parameter in model.named_parameters(remove_duplicate=False)
            if parameter in splits
        ]
        split_optimizer(optimizer, splits, fused=not against)
        run_under_autocast(model)
        done.append(("", "forward under autocast in bfloat16"))
    elif not against:
        use_fused(optimizer)
    done.append((_NAME_OF_OPTIMIZER, f"not fused: {against}" if against else "fused"))
    return model, optimizer, done


def _check_types(model: nn.Module, optimizer: Optimizer) -> None:
    check_type("model", model, nn.Module, "a torch.nn.Module", "Give the model.")
    check_type(
        "optimizer",
        optimizer,
        Optimizer,
        "a torch.optim.Optimizer",
        "Make it of the parameters of the model before this call.",
    )


def _check(model: nn.Module, optimizer: Optimizer, *, splits: bool) -> None:
    if not model.training:
        raise ValueError(
            "an optimizer was given, and the model is in evaluation mode. Call "
            "model.train() before, or leave out the optimizer for inference."
        )
    if isinstance(optimizer, SplitOptimizer) or isinstance(model, TrainedInBfloat16):
        raise ValueError(
            "the model or the optimizer is optimized for training already. Make both "
            "anew, and load their state_dict."
        )
    if any(is_optimized(module) for module in model.modules()):
        raise ValueError(
            "the model is optimized for inference. Give the model as it was before."
        )
    own = set(model.parameters())
    given = [p for group in optimizer.param_groups for p in group["params"]]
    foreign = sum(p not in own for p in given)
    if foreign:
        raise ValueError(
            f"{foreign} of the {len(given)} parameters of the optimizer are not the "
            "model's. Make the optimizer of model.parameters(), and one for each model."
        )
    if splits:
        parameters_to_split(model, optimizer)
        _check_classes(model, optimizer)


def _check_classes(model: nn.Module, optimizer: Optimizer) -> None:
    kind = type(optimizer)
    if kind not in KINDS:
        names = ", ".join(each.__name__ for each in KINDS)
        raise ValueError(
            f"bfloat16 parameters are trained by {names} of torch.optim, which update "
            f"each parameter by itself; found {kind.__module__}.{kind.__qualname__}. Use "
            "one of them, or torch.autocast with float32 parameters."
        )
    if any(group.get("differentiable") for group in optimizer.param_groups):
        raise ValueError(
            "differentiable=True wants gradients through the step, which splitting the "
            "parameters has not. Use torch.autocast with float32 parameters."
        )
    step = vars(optimizer).get("step")
    if step is not None and not hasattr(step, "_wrapped_by_lr_sched"):
        raise ValueError(
            "the optimizer's step was replaced on the object, and would be left out. "
            "Call xpurt.optimize before what replaces it."
        )
    if isinstance(model, nn.parallel.DistributedDataParallel):
        raise ValueError(
            "DistributedDataParallel has taken the parameters as they are. Call "
            "xpurt.optimize before, with the model inside of it."
        )
    if not may_change_class(model):
        raise ValueError(
            f"{type(model).__name__} has a forward or a way of copying of its own on the "
            "object, and can't be run under autocast. Call xpurt.optimize before what "
            "replaced it, as torch.compile does."
        )
