"""Ops that a program defines after the lazy backend was made."""

import functools
from typing import Any

from torch.library import Library

from xpurt import _lazy


@functools.cache
def define() -> None:
    """Lazy tensors know an op as soon as it has a kernel: see Note [Ops that the lazy core
    lacks] in csrc/lazy/lazy_kernels.h. A second call does nothing."""
    before: Any = Library.impl

    @functools.wraps(before)
    def impl(library: Library, *arguments: Any, **named: Any) -> Any:
        result = before(library, *arguments, **named)
        _lazy.register_lazy_kernels()
        return result

    Library.impl = impl  # type: ignore[assignment, method-assign]
