"""Whether xpurt is the backend of lazy tensors; PyTorch's own is refused then."""

import functools
from importlib import import_module
from typing import NoReturn

import torch

from xpurt import _lazy


def check_core() -> None:
    """Raises RuntimeError if this PyTorch lacks what xpurt's backend is made of: the lazy
    core, and its TorchScript backend with the builder of nodes and their lowering."""
    lacking = [
        f"torch._C.{name}"
        for name in ("_lazy", "_lazy_ts_backend")
        if not hasattr(torch._C, name)
    ]
    if not lacking:
        try:
            import_module("torch._lazy")  # functions of PyTorch take it for granted
            _lazy.lazy_device_type  # noqa: B018 - loads the library
            return
        except ImportError as error:  # it needs symbols of PyTorch's libraries
            lacking = [f"what xpurt._lazy needs ({error})"]
    raise RuntimeError(
        "xpurt.lazy.init() needs PyTorch's lazy core and its TorchScript backend, and this "
        f"PyTorch {torch.__version__} lacks {' and '.join(lacking)}: install a build that "
        "has them, or use torch.compile."
    )


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


def check_on_xpu(what: str) -> None:
    """The same; raises it if lazy tensors are on devices of another type, too."""
    check_there(what)
    behind = _lazy.lazy_device_type()
    if behind != "xpu":
        raise RuntimeError(
            f'{what} traces tensors of xpu, and lazy tensors are on "{behind}": call '
            'xpurt.lazy.init(device="xpu") before'
        )
