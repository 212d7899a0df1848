"""Traces ordinary xpu tensors.

Note [Tracing of xpu tensors]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Within `mode` an op on xpu tensors is called on lazy ones in their place. What it returns is
a TracedTensor, whose device is xpu and which has a lazy tensor. For a tensor that was there
before, a lazy one is made over its storage (`ShadowedStorages`): tensors that share memory
are views of one lazy tensor. A step copies what was written to such a storage back to it.

Autograd is above all this: it sees xpu tensors, and nothing of it changes.

After the mode a TracedTensor is read by its value, and results are ordinary tensors. Views
of it, and writes to it, are traced still, so that its aliases see them.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from xpurt import _lazy
from xpurt.lazy import one_backend
from xpurt.lazy.shadowed_storages import ShadowedStorages

aten = torch.ops.aten

_thread = threading.local()

_NO_MEMORY = (
    "set_ gives a tensor the memory of another one, and a traced tensor has none yet. Use "
    "copy_, or set_ with traced.clone() after the mode."
)


class TracedTensor(torch.Tensor):
    """An xpu tensor whose value is computed when it is looked at."""

    lazy: Tensor
    # The op and its arguments of which this result is a view, and its place among results.
    view_of: tuple[Any, Any, int] | None = None

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, lazy: Tensor) -> "TracedTensor":
        made: TracedTensor = Tensor._make_wrapper_subclass(
            cls,
            lazy.size(),
            dtype=lazy.dtype,
            device=torch.device("xpu", lazy.device.index),
        )
        made.lazy = lazy
        _lazy.refuse_as_data(made)
        return made

    def value(self) -> Tensor:
        """An ordinary xpu tensor with the value. Runs what was traced for it."""
        with torch.utils._python_dispatch._disable_current_modes():
            return _lazy.real_value(self.lazy).clone()

    def tolist(self) -> Any:
        return self.value().tolist()

    def __dlpack__(self, **options: Any) -> Any:
        return self.value().__dlpack__(**options)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return repr(self.value())

    def __reduce_ex__(self, protocol: Any) -> Any:
        value: Any = self.value().requires_grad_(self.requires_grad)
        return value.__reduce_ex__(protocol)

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self.value().requires_grad_(self.requires_grad)

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, op: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _call_after_the_mode(op, args, kwargs or {})


class _Mode(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.storages = ShadowedStorages()

    def __torch_dispatch__(
        self, op: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if op.overloadpacket is aten.set_ and not isinstance(args[0], TracedTensor):
            run()  # what was written to the memory that the tensor leaves
            return op(*map(_ordinary, args))
        return _traced(op, args, kwargs or {}, self.storages.lazy)


@contextmanager
def mode() -> Iterator[None]:
    """Within it, ops on xpu tensors are traced. Their device stays xpu, and values are
    computed when they are looked at, at `xpurt.lazy.step()`, and at the end of the mode.

    The addresses of tensors that are written to (`data_ptr`) have the new values after a
    step. A mode within a mode is a part of it. Raises RuntimeError before
    `xpurt.lazy.init()` and if lazy tensors are on another device, and NotImplementedError for an op that changes the sizes or
    the memory of a traced tensor.
    """
    one_backend.check_on_xpu("xpurt.lazy.mode()")
    if _thread_mode() is not None:
        try:
            yield
        finally:
            run()
        return
    _thread.mode = _Mode()
    try:
        with _thread.mode:
            yield
    finally:
        try:
            run()
        finally:
            _thread.mode = None


def run() -> None:
    """Runs what was traced. Tensors that were there before the mode of this thread have the
    new values then."""
    with torch.utils._python_dispatch._disable_current_modes():
        torch._C._lazy._mark_step("", [], wait=False)
        traced = _thread_mode()
        if traced is not None:
            traced.storages.write_back()


def _ordinary(each: Any) -> Any:
    """An ordinary tensor of the same memory. Raises NotImplementedError if a traced tensor
    is no view of an ordinary one."""
    if not isinstance(each, TracedTensor):
        return each
    if each.view_of is None:
        raise NotImplementedError(_NO_MEMORY)
    op, args, place = each.view_of
    return tree_leaves(op(*tree_map(_ordinary, args)))[place]


def _thread_mode() -> _Mode | None:
    return getattr(_thread, "mode", None)


def _traced(
    op: Any, args: Any, kwargs: Any, lazy_of_xpu: Callable[[Tensor], Tensor]
) -> Any:
    """Calls the op on lazy tensors in place of those of xpu."""
    if op.overloadpacket is aten.set_:
        raise NotImplementedError(_NO_MEMORY)
    given: dict[int, Tensor] = {}  # by its lazy tensor: an argument

    def lazy(each: Any) -> Any:
        if isinstance(each, torch.device) and each.type == "xpu":
            return torch.device("lazy", _index(each))
        if not isinstance(each, Tensor):
            return each
        if isinstance(each, TracedTensor):
            found = each.lazy
        elif each.is_xpu:
            found = lazy_of_xpu(each)
        else:
            return each
        given[id(found)] = each
        return found

    def xpu(each: Any) -> Any:
        if not isinstance(each, Tensor) or each.device.type != "lazy":
            return each
        before = given.get(id(each))
        if before is None:
            return TracedTensor(each)
        if before.size() != each.size():
            raise NotImplementedError(
                f"{op} changes the sizes of its argument from {tuple(before.size())} to "
                f"{tuple(each.size())}, and a traced tensor keeps its sizes. Use the op "
                f"that returns a new tensor."
            )
        return before

    with _functionalized():
        lazy_args, lazy_kwargs = tree_map(lazy, (args, kwargs))
        result = tree_map(xpu, op(*lazy_args, **lazy_kwargs))
    if op.is_view and not kwargs:
        for place, each in enumerate(tree_leaves(result)):
            each.view_of = op, args, place
    return result


def _functionalized() -> Any:
    """PyTorch excludes functionalization from what a mode calls. Lazy tensors need it."""
    excluded = torch._C._dispatch_tls_local_exclude_set()
    return torch._C._ForceDispatchKeyGuard(
        torch._C._dispatch_tls_local_include_set(),
        excluded.remove(torch._C.DispatchKey.Functionalize),
    )


def _call_after_the_mode(op: Any, args: Any, kwargs: Any) -> Any:
    aliases = [each.alias_info for each in op._schema.arguments]
    written = [
        value
        for value, alias in zip(args, aliases, strict=False)
        if alias is not None and alias.is_write
    ]
    is_view = any(each is not None for each in aliases) and not written
    if is_view or any(isinstance(each, TracedTensor) for each in written):
        return _traced(op, args, kwargs, lambda each: _lazy.lazy_over(each.clone()))

    def value(each: Any) -> Any:
        return _lazy.real_value(each.lazy) if isinstance(each, TracedTensor) else each

    args, kwargs = tree_map(value, (args, kwargs))
    return op(*args, **kwargs)


def _index(device: torch.device) -> int:
    return torch.xpu.current_device() if device.index is None else device.index
