"""Which accelerator PyTorch has: xpu, or the one that its build brings.

A process has one accelerator. Where PyTorch has none of its own (a CPU build, or a
CUDA build on a machine without a CUDA GPU), xpu is it from the import on. Where a
CUDA GPU is there, CUDA stays the accelerator until a mapping is asked for, and xpu
takes over then, unless CUDA is in use already.
"""

import os

import torch

from xpurt import _C
from xpurt.config import guard_device_count
from xpurt.errors import MappingError

_NVML_CHECK = "PYTORCH_NVML_BASED_CUDA_CHECK"


def _has_cuda_gpu() -> bool:
    """Asks NVML: the CUDA runtime's own count would initialize CUDA, after which
    a forked process cannot use it."""
    before = os.environ.get(_NVML_CHECK)
    os.environ[_NVML_CHECK] = "1"
    try:
        return torch.cuda.is_available()
    finally:
        if before is None:
            del os.environ[_NVML_CHECK]
        else:
            os.environ[_NVML_CHECK] = before


def settle_at_import() -> None:
    """Makes xpu the accelerator, unless the build has another with a device."""
    _C.set_guard_device_count(guard_device_count())
    if not _C.is_cuda_build():
        _C.set_active(True)
        return
    _C.yield_cuda_to_xpu()
    _C.set_active(not _has_cuda_gpu())


def is_active() -> bool:
    """Whether xpu is PyTorch's accelerator now."""
    return _C.is_active()


def activate(asked: bool) -> None:
    """Makes xpu the accelerator, if it is not yet.

    asked: whether the user asked for a mapping, rather than used xpu without one.

    Raises:
        MappingError: CUDA is the accelerator and nobody asked for xpu, or CUDA is in
            use in this process.
    """
    if _C.is_active():
        return
    if not asked:
        raise MappingError(
            "xpu was used, but CUDA is the accelerator of this process, and PyTorch "
            "has one at a time. Ask for xpu first: xpurt.set_xpu_mapping(...), or "
            "XPURT_MAPPING in the environment."
        )
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        raise MappingError(
            "an xpu mapping was asked for, but CUDA is in use in this process, and "
            "PyTorch has one accelerator per process. Set the mapping before the "
            "first use of CUDA, or hide the GPU with CUDA_VISIBLE_DEVICES=''."
        )
    _C.set_active(True)
