"""Runs backward in the thread that calls it, where one ordinal is behind the mapping.

The reason, and the cases in which it does not, are in
csrc/device/backward_thread.cpp, Note [Backward in the calling thread].
"""

from collections.abc import Callable
from typing import Any

import torch
from torch._C import _ImperativeEngine
from torch.autograd.variable import Variable

from xpurt import _C

# From PyTorch's engine, for nodes on a device that has streams and is not the accelerator.
_NO_STREAM = "opt_ready_stream && opt_parent_stream"


class _Engine(_ImperativeEngine):
    """PyTorch's engine. Without state of its own, as PyTorch's."""

    def run_backward(self, *arguments: Any, **options: Any) -> Any:
        try:
            return _C.run_backward(super().run_backward, arguments, options)
        except RuntimeError as error:
            if _NO_STREAM not in str(error):
                raise
            raise RuntimeError(_refusal()) from error


def _refusal() -> str:
    other = torch.accelerator.current_accelerator()
    return (
        "a backward of tensors that are not on the accelerator was asked for, and autograd "
        "knows the streams of one accelerator per process; found the accelerator "
        f"{other and other.type}, which took that place from xpu. Run the backward of xpu "
        "tensors in another process, or take ipu, maia or xla for the prototype: xpu does "
        "all it does alone beside these."
    )


def _is_multithreading_enabled() -> bool:
    return _C.shown_multithreading()


def use_calling_thread() -> Callable[[], None]:
    """Replaces the engine that Python calls, and the functions that read and write its
    flag for several threads.

    Returns a function that undoes this.
    """
    engine = Variable._execution_engine
    read = torch._C._is_multithreading_enabled
    write = torch._C._set_multithreading_enabled

    def _set_multithreading_enabled(enabled: bool) -> None:
        # PyTorch's function checks the argument, and reports to function modes.
        if not _C.show_multithreading(enabled):
            write(enabled)

    Variable._execution_engine = _Engine()
    torch._C._is_multithreading_enabled = _is_multithreading_enabled
    torch._C._set_multithreading_enabled = _set_multithreading_enabled
    torch.autograd.is_multithreading_enabled = _is_multithreading_enabled

    def undo() -> None:
        Variable._execution_engine = engine
        torch._C._is_multithreading_enabled = read
        torch._C._set_multithreading_enabled = write
        torch.autograd.is_multithreading_enabled = read

    return undo
