"""Ops of code for the host that xpu computes.

Note [Ops of xpu in code for the host]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Compiled host code has CPU tensors only. The CPU cannot compute all of its ops: a random
op would draw from the CPU's generator, and PyTorch has ops for devices alone, as the
fused cells of recurrent networks, which have no kernel for the CPU. Each of them is
replaced by an op of this module. It runs the same op on xpu, on copies of the operands,
and returns CPU tensors over the bytes of the results. What the op writes to is copied
back.

All ops are defined at once, before the first graph is compiled: a graph from Inductor's
cache may call any of them.
"""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, in_kernel_invocation_manager
from torch.utils import _pytree as pytree

from xpurt import _C

_NAMESPACE: Final = "xpurt_on_device"
_CPU: Final = torch.device("cpu")
_SEEDED: Final = torch.Tag.nondeterministic_seeded

_library: Any = torch.library.Library(_NAMESPACE, "DEF")  # type: ignore[no-untyped-call]
_of_host: dict[OpOverload, OpOverload] = {}  # an op of this module by PyTorch's
_of_device: dict[OpOverload, OpOverload] = {}  # the other way round


def define_for(op: OpOverload) -> OpOverload:
    """Defines the op that takes the place of `op` in code for the host. A second call
    returns the same op."""
    if op not in _of_host:
        packet, overload = op._schema.name.replace("::", "_"), op._overloadname
        full = packet if overload == "default" else f"{packet}.{overload}"
        arguments = str(op._schema).partition("(")[2]
        tags = tuple(tag for tag in op.tags if tag == _SEEDED)
        _library.define(f"{full}({arguments}", tags=tags)
        _library.impl(full, _on_xpu(op), "CompositeExplicitAutograd")
        torch.library.register_fake(f"{_NAMESPACE}::{full}", _fake(op), lib=_library)
        found = getattr(getattr(torch.ops, _NAMESPACE), packet)
        ours = getattr(found, overload)
        _of_host[op], _of_device[ours] = ours, op
    return _of_host[op]


def of_host(op: Any) -> Any:
    """The op that computes `op` in code for the host, which is `op` itself if the CPU
    has it."""
    return _of_host.get(op, op) if isinstance(op, OpOverload) else op


def of_device(op: Any) -> Any:
    """The op that `op` of this module computes; any other `op` itself."""
    return _of_device.get(op, op) if isinstance(op, OpOverload) else op


def is_called(op: Any) -> bool:
    """Whether an op is one of this module."""
    return getattr(op, "namespace", "") == _NAMESPACE


def call(op: OpOverload) -> None:
    """Makes Inductor call an op as in eager mode. Without it an op is called only if
    config.implicit_fallbacks is set."""
    from torch._inductor.lowering import lowerings, make_fallback

    if op not in lowerings:
        make_fallback(op, warn=False)  # type: ignore[no-untyped-call]


def _on_xpu(op: OpOverload) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        device = torch.device("xpu", torch.xpu.current_device())
        moved: dict[int, tuple[Tensor, Tensor]] = {}

        def move(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return device if isinstance(value, torch.device) else value
            moved.setdefault(id(value), (value, value.to(device)))
            return moved[id(value)][1]

        def shared(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            for before, after in moved.values():
                if value is after:
                    return before
            return _C.share_with_cpu(value)

        with torch.no_grad():
            there = pytree.tree_map(move, (args, kwargs))
            found = op(*there[0], **there[1])
            for value in _written(op, args, kwargs):
                before, after = moved[id(value)]
                before.copy_(after)
            return pytree.tree_map(shared, found)

    return run


def _written(op: OpOverload, args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors among the arguments of a call that the op writes to."""
    found = [
        kwargs.get(each.name, args[i] if i < len(args) else None)
        for i, each in enumerate(op._schema.arguments)
        if each.alias_info is not None and each.alias_info.is_write
    ]
    return [each for each in pytree.tree_leaves(found) if isinstance(each, Tensor)]


def _fake(op: OpOverload) -> Callable[..., Any]:
    """What a compiler calls instead of _on_xpu(): the op's own results, which differ by
    device."""

    def results(*args: Any, **kwargs: Any) -> Any:
        device = torch.device("xpu", torch.xpu.current_device())

        def move(value: Any) -> Any:
            if isinstance(value, FakeTensor):
                return faked(value, device)
            return device if isinstance(value, torch.device) else value

        args, kwargs = pytree.tree_map(move, (args, kwargs))
        return pytree.tree_map(lambda each: faked(each, _CPU), op(*args, **kwargs))

    return results


def faked(value: Any, device: torch.device) -> Any:
    """The tensor on a device, without memory. It is conjugated or negated if the tensor
    is: Inductor removes a clone that changes no property, and such a clone resolves. Views
    of one tensor stay views of one: a backward graph writes to what it alone has."""
    if not isinstance(value, FakeTensor):
        return value
    layout = value.storage_offset(), value.size(), value.stride()
    with value.fake_mode:
        made = torch.empty_strided(*layout[1:], dtype=value.dtype, device=device)
        with in_kernel_invocation_manager(value.fake_mode):
            made.set_(value.untyped_storage(), *layout)
        made = made.conj() if value.is_conj() else made
        return torch._neg_view(made) if value.is_neg() else made
