"""PyTorch's accelerator: xpu, or the one that its build supports.

A process has one accelerator. If PyTorch has none of its own (a CPU build, or a CUDA
build on a machine without a CUDA GPU), it is xpu from the import on. If a CUDA GPU is
there, CUDA stays the accelerator until a mapping is requested. Then xpu takes over,
unless CUDA is in use already.
"""

import torch

from xpurt import _C
from xpurt.config import check_locks_at_import, guard_device_count, names_a_mapping
from xpurt.errors import MappingError
from xpurt.startup.cuda_gpu import has_gpu

# PCI vendors. A build of PyTorch may drive the GPUs of the first two as "cuda".
NVIDIA, AMD, INTEL = 0x10DE, 0x1002, 0x8086


def type_that_drives(vendor_id: int, backend: str) -> str:
    """The device type under which this build of PyTorch drives a GPU: "cuda", or an
    empty string if it does not.

    vendor_id: the GPU's PCI vendor; 0 if unknown. backend: SYCL's name for its driver.
    """
    if torch.version.hip:
        of_build = vendor_id == AMD or backend == "hip"
    elif torch.version.cuda:
        of_build = vendor_id == NVIDIA or backend == "cuda"
    else:
        return ""
    return "cuda" if of_build and has_gpu() else ""


def activate_at_import() -> None:
    """Makes xpu the accelerator, unless the build has another with a device.

    A mapping in the environment counts as a request, if CUDA is not in use yet.
    """
    _C.check_locks(check_locks_at_import())
    _C.set_guard_device_count(guard_device_count())
    if not _C.is_cuda_build():
        _C.set_active(True)
        return
    _C.yield_cuda_to_xpu()
    asked = names_a_mapping() and not _cuda_is_in_use()
    _C.set_active(asked or not has_gpu())


def _cuda_is_there() -> bool:
    return _C.is_cuda_build() and has_gpu()


def is_active() -> bool:
    """Whether xpu is PyTorch's accelerator now."""
    return _C.is_active()


def activate(asked: bool) -> None:
    """Makes xpu the accelerator, if it is not yet.

    asked: whether the user requested a mapping; False if xpu was used without one.
    Raises:
        MappingError: CUDA is the accelerator and xpu was not requested, or CUDA is in
            use in this process.
    """
    if _C.is_active():
        return
    if not _cuda_is_there():
        # A prototype device took the place of xpu: xpu computes beside it.
        _C.set_active(True)
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
