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


class _Engine(_ImperativeEngine):
    """PyTorch's engine. Without state of its own, as PyTorch's."""

    def run_backward(self, *arguments: Any, **options: Any) -> Any:
        return _C.run_backward(super().run_backward, arguments, options)


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
