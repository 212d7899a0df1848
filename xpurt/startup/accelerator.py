"""Which accelerator PyTorch has: xpu, or the one that its build brings.

A process has one accelerator. Where PyTorch has none of its own (a CPU build, or a
CUDA build on a machine without a CUDA GPU), xpu is it from the import on. Where a
CUDA GPU is there, CUDA stays the accelerator until a mapping is asked for, and xpu
takes over then, unless CUDA is in use already.
"""

import ctypes
import warnings
from pathlib import Path

import torch

from xpurt import _C
from xpurt.config import guard_device_count, names_a_mapping
from xpurt.errors import MappingError

_CUDA_DRIVER = "libcuda.so.1"
_ROCM_NODE = Path("/dev/kfd")


def _has_gpu() -> bool:
    """Whether the accelerator that the build brings has a device.

    NVML is asked and never CUDA: its own count would initialize CUDA, after which a
    forked process cannot use it and CUDA_VISIBLE_DEVICES has no effect any more.
    """
    if torch.version.hip:
        return _ROCM_NODE.exists()
    with warnings.catch_warnings():
        # `import torch` is no place to hear of a driver's faults, nor to fail of them.
        warnings.simplefilter("ignore")
        count = torch.cuda._device_count_nvml()
    if count >= 0:
        return count > 0
    # NVML cannot say. A machine with the driver may have a GPU: leave it to CUDA.
    try:
        ctypes.CDLL(_CUDA_DRIVER)
    except OSError:
        return False
    return True


def activate_at_import() -> None:
    """Makes xpu the accelerator, unless the build has another with a device.

    A mapping in the environment counts as asked for, if CUDA is not in use yet.
    """
    _C.set_guard_device_count(guard_device_count())
    if not _C.is_cuda_build():
        _C.set_active(True)
        return
    _C.yield_cuda_to_xpu()
    asked = names_a_mapping() and not _cuda_is_in_use()
    _C.set_active(asked or not _has_gpu())


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
    if _cuda_is_in_use():
        raise MappingError(
            "an xpu mapping was asked for, but CUDA is in use in this process, and "
            "PyTorch has one accelerator per process. Set the mapping before the "
            "first use of CUDA, or hide the GPU with CUDA_VISIBLE_DEVICES=''."
        )
    _C.set_active(True)


def _cuda_is_in_use() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
