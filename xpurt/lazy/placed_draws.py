"""Random ops of traced graphs, for the compiler: see Note [Random numbers of lazy graphs]
in csrc/lazy/random_call.h."""

import functools
from typing import Any

import torch
from torch._ops import OpOverload

from xpurt.compiler import device_ops

_NAMESPACE = "xpurt_lazy"


@functools.cache
def define() -> None:
    """Tells the compiler what the ops with a position return, and what takes their place
    in code for the host. A second call does nothing."""
    for op in ops_with("position"):
        packet = op._schema.name.removeprefix(_NAMESPACE + "::")
        aten = getattr(getattr(torch.ops.aten, packet), op._overloadname)
        name = f"{op._schema.name}.{op._schema.overload_name}".removesuffix(".")
        torch.library.register_fake(name, _fake(aten), allow_override=True)
        device_ops.define_for(op)


def ops_with(argument: str) -> list[OpOverload]:
    """The ops that take the place of PyTorch's in traced graphs, and whose first argument
    has this name."""
    found = []
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, own = name.partition("::")
        if namespace != _NAMESPACE:
            continue
        packet, _, overload = own.partition(".")
        op = getattr(getattr(torch.ops, _NAMESPACE), packet)
        op = getattr(op, overload or "default")
        if op._schema.arguments[0].name == argument:
            found.append(op)
    return found


def _fake(aten: Any) -> Any:
    def results(position: torch.Tensor, *arguments: Any, **named: Any) -> Any:
        return aten(*arguments, **named)

    return results
