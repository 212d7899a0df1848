"""Random ops of traced graphs, for the compiler: see Note [Random numbers of lazy graphs]
in csrc/lazy/random_call.h."""

import functools
from typing import Any

import torch

from xpurt.compiler import device_ops

_NAMESPACE = "xpurt_lazy"


@functools.cache
def define() -> None:
    """Tells the compiler what the ops with a position return, and what takes their place
    in code for the host. A second call does nothing."""
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, of_aten = name.partition("::")
        if namespace != _NAMESPACE:
            continue
        packet, _, overload = of_aten.partition(".")
        aten = getattr(getattr(torch.ops.aten, packet), overload or "default")
        torch.library.register_fake(name, _fake(aten), allow_override=True)
        ours = getattr(getattr(torch.ops, _NAMESPACE), packet)
        device_ops.define_for(getattr(ours, overload or "default"))


def _fake(aten: Any) -> Any:
    def results(position: torch.Tensor, *arguments: Any, **named: Any) -> Any:
        return aten(*arguments, **named)

    return results
