"""The function mode of a thread that is in a block of autocast with a layout.

Note [Layouts by a function mode]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Kernels on the Autocast keys would cost less per op. The mode adds 1.5 us to a call of a
function, 15 us to a convolution of CPU tensors and 30 us to one of xpu (AMD EPYC,
processor time of one thread, 2026-11-26), of 56 and 65 us for the smallest ones. But a
dispatch key does not see `numpy()`, `stride()` or `data_ptr()`, nor a `view` in a
nested block that is not enabled, and it stays in the dispatcher for programs that never
ask for it. A function mode sees all that Python does with a tensor, only within the
block and its thread, and torch.compile knows it. The casts are those of torch.autocast,
whose state is set too.

C++ that takes tensors without the dispatcher's Python binding (an extension's own
function, a TorchScript function) gets a tensor in channels last as it is.
"""

import threading
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode

from xpurt.optimization.autocast.int8_ops import INT8_OPS
from xpurt.optimization.autocast.layout_functions import (
    DATA,
    DROPOUT,
    KEEPS_LAYOUT,
    READS_METADATA,
)
from xpurt.optimization.autocast.layout_ops import LAYOUT_OPS
from xpurt.optimization.autocast.layout_state import LayoutState

_of_thread = threading.local()

NOT_COMPILED: Final = (
    "xpurt.autocast(dtype=torch.int8) was requested for a compiled program, and it is for "
    "programs that run op by op. Compile what xpurt.quantize(model) returns"
)


class LayoutMode(TorchFunctionMode):
    """Gives convolutions and linear layers the layout that oneDNN computes fastest, or
    int8, and makes tensors plain before the program looks."""

    def __init__(self) -> None:
        super().__init__()
        self.state = LayoutState()

    @staticmethod
    def of_thread() -> "LayoutMode":
        mode: LayoutMode | None = getattr(_of_thread, "mode", None)
        if mode is None:
            mode = _of_thread.mode = LayoutMode()
        return mode

    def begin_block(self) -> None:
        state = self.state
        if state.depth == 0:
            state.block = object()
            self.__enter__()  # type: ignore[no-untyped-call]
        state.depth += 1

    def end_block(self) -> None:
        """At the end of the outermost block what the program holds becomes plain."""
        state = self.state
        state.depth -= 1
        if state.depth == 0:
            self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            state.temporary.make_all_plain()

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        op: Callable[..., Tensor | None] | None
        kwargs = kwargs or {}
        # A compiler chooses layouts itself.
        if torch.compiler.is_compiling():
            if any(self.state.int8.values()) and function in INT8_OPS:
                raise RuntimeError(NOT_COMPILED)
            return function(*args, **kwargs)
        op = INT8_OPS.get(function) if self.state.int8 else None
        if op is not None and not _is_transformed():
            result = op(self.state, *args, **kwargs)
            if result is not None:
                return result
        op = LAYOUT_OPS.get(function)
        if op is not None and not _is_transformed():
            result = op(self.state, *args, **kwargs)
            if result is not None:
                return result
        state, temporary = self.state, self.state.temporary
        if function in DATA:
            state.block = object()  # weights may be written without a new version
        if not temporary or function in READS_METADATA:
            return function(*args, **kwargs)
        if _keeps_layout(function, args, kwargs):
            if not temporary.has_any(args) and not temporary.has_any(kwargs.values()):
                return function(*args, **kwargs)
            result = function(*args, **kwargs)
            self._note(result, args, kwargs)
            return result
        temporary.make_plain(args)
        temporary.make_plain(kwargs)
        return function(*args, **kwargs)

    def _note(self, result: Any, args: Any, kwargs: Any) -> None:
        """Notes what a function that keeps the layout has made."""
        if type(result) is tuple:
            for each in result:
                self._note(each, args, kwargs)
        elif (
            isinstance(result, Tensor)
            and not any(result is each for each in args)
            and not any(result is each for each in kwargs.values())
        ):
            self.state.temporary.add(result)


def _keeps_layout(function: Any, args: Any, kwargs: Any) -> bool:
    if function in KEEPS_LAYOUT:
        return "memory_format" not in kwargs and "out" not in kwargs
    if function in DROPOUT:
        return kwargs.get("training", args[2] if len(args) > 2 else True) is False
    return False


def _is_transformed() -> bool:
    """Whether tensors are not what they seem: under torch.func, in fake tensors, while a
    program is traced, with tangents of forward mode."""
    return (
        torch._C._len_torch_dispatch_stack() > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._get_tracing_state() is not None
        or forward_ad._current_level >= 0
    )
