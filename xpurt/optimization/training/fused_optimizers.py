"""The fused steps of PyTorch's optimizers, switched on after the optimizer was made."""

from typing import Final

import torch
from torch import nn, optim
from torch.optim import Optimizer

KINDS: Final = (optim.SGD, optim.Adam, optim.AdamW)
_DEVICES: Final = ("cpu", "xpu")


def reason_against_fused(model: nn.Module, optimizer: Optimizer) -> str:
    """Why the step of the optimizer is not to become a fused one; "" if it may."""
    if not any(_kind_of(optimizer) is kind for kind in KINDS):
        return f"{type(optimizer).__name__} has no fused step on every device"
    groups = optimizer.param_groups
    for flag in ("fused", "foreach", "differentiable"):
        if any(group[flag] for group in groups):
            return f"{flag}=True was asked for"
    if any(group["fused"] is False or group["foreach"] is False for group in groups):
        return "a step that is not fused was asked for"
    parameters = [p for group in groups for p in group["params"]]
    if any(p.device.type not in _DEVICES for p in parameters):
        return "it has parameters on devices besides the CPU and xpu"
    if not all(p.is_floating_point() for p in parameters):
        return "it has complex parameters"
    if any(getattr(module, "sparse", False) for module in model.modules()):
        return "a fused step takes no sparse gradients"
    return ""


def use_fused(optimizer: Optimizer) -> None:
    """Makes its steps those of fused=True. A GradScaler scales the gradients as before."""
    for options in (optimizer.defaults, *optimizer.param_groups):
        options.update(fused=True, foreach=None)
    for parameter, state in optimizer.state.items():
        if "step" in state:
            step = torch.as_tensor(state["step"])
            state["step"] = step.to(parameter.device, torch.float32)


def _kind_of(optimizer: Optimizer) -> type[Optimizer]:
    return getattr(optimizer, "_original_class", type(optimizer))
