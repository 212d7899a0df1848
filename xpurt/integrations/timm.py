"""The backend of torch.distributed that timm takes for xpu.

timm's training script initializes torch.distributed with "ccl" for xpu, a backend of
Intel's extension of PyTorch, which these wheels lack. Where nobody registered it, ranks
get the backends that PyTorch gives a group on xpu.
"""

import functools
from types import ModuleType
from typing import Any, Final

import torch.distributed

_FUNCTION: Final = "init_distributed_device_so"
_BACKENDS: Final = "cpu:gloo,xpu:xccl"


def change(distributed: ModuleType) -> None:
    """Changes the default backend in the module ``timm.utils.distributed``.

    Raises AttributeError if the module differs from those of timm 1.0.
    """
    before = getattr(distributed, _FUNCTION)

    @functools.wraps(before)
    def init(
        device: str = "cuda", dist_backend: str | None = None, *rest: Any, **more: Any
    ) -> Any:
        kind = device.partition(":")[0]
        if dist_backend is None and kind == "xpu" and not _has_ccl():
            dist_backend = _BACKENDS
        return before(device, dist_backend, *rest, **more)

    setattr(distributed, _FUNCTION, init)


def _has_ccl() -> bool:
    return hasattr(torch.distributed.Backend, "CCL")
