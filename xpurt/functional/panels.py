"""Linear layers by products of panels, for CPU tensors and for xpu tensors in memory of
the host.

Note [Where products of panels pay]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
The rule is of the processor and the shape alone, so that a model computes the same values
in each run. With AVX2, in float32, one thread (AMD EPYC of Zen 3, processor time, beside
other programs, 2026-11-30), over the better of PyTorch's product and oneDNN's primitive: 18
shapes of 1 to 4,096 rows and 32 to 3,072 channels took 0.72 to 0.99, and results of 3 million
elements 1.07 to 1.3. The largest error was 0.5 to 1.4 of that of PyTorch's product.
"""

import math
from typing import Final

import torch
from torch import Tensor

from xpurt.functional.winograd import PANEL, is_memory_of_host

# Of AVX-512 oneDNN makes better use.
_IS_AVX2: Final = torch.backends.cpu.get_cpu_capability() == "AVX2"
_MOST_RESULTS: Final = 2 << 20


def takes_panels(x: Tensor, weight: Tensor) -> bool:
    """Whether `xpurt::panel_linear` is expected to take less time than PyTorch's product
    and oneDNN's primitive. x: (..., in); weight: (out, in)."""
    return (
        _IS_AVX2
        and x.dtype == weight.dtype == torch.float32
        and weight.shape[0] % PANEL == 0
        and math.prod(x.shape[:-1]) * weight.shape[0] <= _MOST_RESULTS
        and (x.device.type == "cpu" or is_memory_of_host(x))
    )


def pack_panels(weight: Tensor) -> Tensor:
    """weight: (out, in). Returns (out / PANEL, in, PANEL)."""
    return weight.reshape(-1, PANEL, weight.shape[1]).transpose(1, 2).contiguous()
