"""Optimizers of lazy tensors call ops on lists, as those of xpu do."""

import functools
from importlib import import_module
from typing import Any

from xpurt import optimizer_devices

# Those whose graphs are the same in each step. ASGD reads its numbers of steps, and has
# other graphs each time if it calls ops on lists.
OPTIMIZERS = ("adadelta", "adagrad", "adam", "nadam", "rmsprop", "rprop", "sgd")


@functools.cache
def define() -> None:
    """From now on these optimizers choose `foreach` for lazy parameters by default. A
    second call does nothing. See Note [Ops on lists of lazy tensors] in
    csrc/lazy/list_ops.h."""
    from torch.optim import optimizer

    before: Any = optimizer._default_to_fused_or_foreach

    @functools.wraps(before)
    def chosen(params: Any, differentiable: bool, use_fused: bool = False) -> Any:
        if differentiable or use_fused or not params:
            return before(params, differentiable, use_fused)
        are_lazy = all(
            type(each) in optimizer._foreach_supported_types
            and each.device.type == "lazy"
            for each in params
        )
        return (False, True) if are_lazy else before(params, differentiable, use_fused)

    modules = [import_module(f"torch.optim.{name}") for name in OPTIMIZERS]
    optimizer_devices.replace(before, chosen, modules)
