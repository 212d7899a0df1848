"""Whether the accelerator that this build of PyTorch has of its own has a device.

xpurt_autoload.py loads this module by its path, before the package.
"""

import ctypes
import warnings
from pathlib import Path

import torch

_CUDA_DRIVER = "libcuda.so.1"
_ROCM_NODE = Path("/dev/kfd")


def has_gpu() -> bool:
    """Whether a GPU of CUDA, or of ROCm, is there.

    NVML counts the GPUs, never CUDA: CUDA's count would initialize CUDA. A forked
    process could then not use it, and CUDA_VISIBLE_DEVICES would have no effect.
    """
    if torch.version.hip:
        return _ROCM_NODE.exists()
    with warnings.catch_warnings():
        # `import torch` must neither warn about a driver's faults, nor fail from them.
        warnings.simplefilter("ignore")
        count = torch.cuda._device_count_nvml()
    if count >= 0:
        return count > 0
    # NVML has no answer. If the CUDA driver is there, a GPU may be, too: CUDA decides.
    try:
        ctypes.CDLL(_CUDA_DRIVER)
    except OSError:
        return False
    return True
