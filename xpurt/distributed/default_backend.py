"""Makes xpurt's backend the one that PyTorch calls `xccl`, its default for xpu.

PyTorch has a branch of its own for this name. It wants a class `ProcessGroupXCCL` in
``torch.distributed.distributed_c10d``, which only a wheel with XPU compiled in has, and
a flag.

Without a backend's name PyTorch 2.13 gives a group the accelerator's backend alone, and
then takes gloo for the group's default, which is absent. ``DistributedDataParallel``
fails on that. So such a group gets gloo for CPU tensors, too: ``cpu:gloo,xpu:xccl``.
"""

import functools
from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Any

from xpurt import _C

_CLASS = "ProcessGroupXCCL"


def change(c10d: ModuleType) -> None:
    """Adds the backend to the module ``torch.distributed.distributed_c10d``.

    Does nothing where PyTorch has the class itself, or has no gloo.
    """
    if hasattr(c10d, _CLASS) or not c10d.is_gloo_available():
        return

    def make_inner(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
        return c10d.ProcessGroupGloo(store, rank, size, timeout=timeout)

    names = vars(c10d)
    backend = _C.define_backend(make_inner)
    backend.__module__ = c10d.__name__
    names[_CLASS] = backend
    names["_XCCL_AVAILABLE"] = True
    config = c10d.BackendConfig
    config.__init__ = _with_gloo(config.__init__, c10d.Backend)


def _with_gloo(before: Callable[..., None], backends: Any) -> Callable[..., None]:
    @functools.wraps(before)
    def init(config: Any, backend: str) -> None:
        before(config, backend)
        unnamed = str(backend) == backends.UNDEFINED
        if unnamed and config.device_backend_map == {"xpu": backends.XCCL}:
            config.device_backend_map = {"cpu": backends.GLOO, "xpu": backends.XCCL}

    return init
