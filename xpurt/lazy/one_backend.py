"""Whether xpu is the backend of lazy tensors; PyTorch's own is refused then."""

import functools
from typing import NoReturn

import torch._C._lazy_ts_backend


@functools.cache
def keep() -> None:
    """From now on `torch._lazy.ts_backend.init()` raises an error. PyTorch's would replace
    kernels of xpu's backend before it finds that there is a backend."""

    def refuse() -> NoReturn:
        raise RuntimeError(
            "torch._lazy.ts_backend.init() makes PyTorch's own backend that of lazy tensors, "
            "and a process has one; found xpu's, of xpurt.lazy.init(). Call it in a new "
            "process, without xpurt.lazy.init()."
        )

    torch._C._lazy_ts_backend._init = refuse


def check_there(what: str) -> None:
    """Raises RuntimeError before xpu is the backend; `what` names what needs it."""
    if not keep.cache_info().currsize:
        raise RuntimeError(
            f"{what} needs xpu as the backend of lazy tensors: call xpurt.lazy.init() before"
        )
