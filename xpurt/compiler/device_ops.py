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

A renamed device has such ops, too: those that its vendor has kernels for, and random ones.
"""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, in_kernel_invocation_manager
from torch.utils import _pytree as pytree

from xpurt import _C

_CPU: Final = torch.device("cpu")
_SEEDED: Final = torch.Tag.nondeterministic_seeded
_PREFIX: Final = "xpurt_on_"


class DeviceOps:
    """The ops of one device type in graphs of other tensors.

    namespace: of the ops, "xpurt_on_...".
    device: the device that computes now.
    to_device, from_device: an operand there; a result where it is called from, as of a
        tensor without memory where the operands are.
    """

    def __init__(
        self,
        namespace: str,
        device: Callable[[], torch.device],
        to_device: Callable[[Tensor, torch.device], Tensor],
        from_device: Callable[[Tensor, torch.device], Tensor],
    ) -> None:
        assert namespace.startswith(_PREFIX)
        self._namespace = namespace
        self._device = device
        self._to_device = to_device
        self._from_device = from_device
        self._library: Any = torch.library.Library(namespace, "DEF")  # type: ignore[no-untyped-call]
        self._of_host: dict[OpOverload, OpOverload] = {}  # ours by PyTorch's
        self._of_device: dict[OpOverload, OpOverload] = {}  # the other way round

    def define_for(self, op: OpOverload) -> OpOverload:
        """Defines the op that takes the place of `op`. A second call returns the same
        op."""
        if op not in self._of_host:
            packet, overload = op._schema.name.replace("::", "_"), op._overloadname
            full = packet if overload == "default" else f"{packet}.{overload}"
            arguments = str(op._schema).partition("(")[2]
            tags = tuple(tag for tag in op.tags if tag == _SEEDED)
            self._library.define(f"{full}({arguments}", tags=tags)
            self._library.impl(full, self._run(op), "CompositeExplicitAutograd")
            torch.library.register_fake(
                f"{self._namespace}::{full}", self._fake(op), lib=self._library
            )
            found = getattr(getattr(torch.ops, self._namespace), packet)
            ours = getattr(found, overload)
            self._of_host[op], self._of_device[ours] = ours, op
        return self._of_host[op]

    def of_host(self, op: Any) -> Any:
        """The op that computes `op` in such a graph, which is `op` itself if none has
        been defined."""
        return self._of_host.get(op, op) if isinstance(op, OpOverload) else op

    def of_device(self, op: Any) -> Any:
        """The op that one of these computes; any other `op` itself."""
        return self._of_device.get(op, op) if isinstance(op, OpOverload) else op

    def _run(self, op: OpOverload) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            device = self._device()
            moved: dict[int, tuple[Tensor, Tensor]] = {}
            caller = _device_of(args, kwargs)

            def move(value: Any) -> Any:
                if not isinstance(value, Tensor):
                    return device if isinstance(value, torch.device) else value
                if id(value) not in moved:
                    moved[id(value)] = (value, self._to_device(value, device))
                return moved[id(value)][1]

            def result(value: Any) -> Any:
                if not isinstance(value, Tensor):
                    return value
                for before, after in moved.values():
                    if value is after:
                        return before
                return self._from_device(value, caller)

            with torch.no_grad(), torch._C._AutoDispatchBelowAutograd():
                there = pytree.tree_map(move, (args, kwargs))
                found = op(*there[0], **there[1])
                for value in _written(op, args, kwargs):
                    before, after = moved[id(value)]
                    if before.data_ptr() != after.data_ptr():
                        before.copy_(after)
                return pytree.tree_map(result, found)

        return run

    def _fake(self, op: OpOverload) -> Callable[..., Any]:
        """What a compiler calls instead of _run(): the op's own results, which differ by
        device."""

        def results(*args: Any, **kwargs: Any) -> Any:
            device = self._device()
            caller = _device_of(args, kwargs)

            def move(value: Any) -> Any:
                if isinstance(value, FakeTensor):
                    return faked(value, device)
                return device if isinstance(value, torch.device) else value

            args, kwargs = pytree.tree_map(move, (args, kwargs))
            with torch._C._AutoDispatchBelowAutograd():
                found = op(*args, **kwargs)
            return pytree.tree_map(lambda each: faked(each, caller), found)

        return results


def _device_of(args: Any, kwargs: Any) -> torch.device:
    """Where an op is called: the device of the first tensor, else the one that is asked
    for, else the CPU."""
    leaves = pytree.tree_leaves((args, kwargs))
    tensors = (each.device for each in leaves if isinstance(each, Tensor))
    asked = (each for each in leaves if isinstance(each, torch.device))
    return next(tensors, next(asked, _CPU))


# Those of xpu.
_of_xpu: Final = DeviceOps(
    "xpurt_on_device",
    lambda: torch.device("xpu", torch.xpu.current_device()),
    lambda tensor, device: tensor.to(device),
    lambda tensor, _: _C.share_with_cpu(tensor),
)
define_for: Final = _of_xpu.define_for
of_host: Final = _of_xpu.of_host
of_device: Final = _of_xpu.of_device


def is_called(op: Any) -> bool:
    """Whether an op is one of this module."""
    return str(getattr(op, "namespace", "")).startswith(_PREFIX)


def call(op: OpOverload) -> None:
    """Makes Inductor call an op as in eager mode. Without it an op is called only if
    config.implicit_fallbacks is set."""
    from torch._inductor.lowering import lowerings, make_fallback

    if op not in lowerings:
        make_fallback(op, warn=False)  # type: ignore[no-untyped-call]


def _written(op: OpOverload, args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors among the arguments of a call that the op writes to."""
    found = [
        kwargs.get(each.name, args[i] if i < len(args) else None)
        for i, each in enumerate(op._schema.arguments)
        if each.alias_info is not None and each.alias_info.is_write
    ]
    return [each for each in pytree.tree_leaves(found) if isinstance(each, Tensor)]


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
