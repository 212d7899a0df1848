"""Linear layers by products of panels, for CPU tensors and for xpu tensors in memory of
the host.

Note [Where products of panels pay]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
The rule is of the processor and the shape alone, so that a model computes the same values
in each run. With AVX2, in float32, one thread (AMD EPYC of Zen 3, processor time, beside
other programs, 2026-11-30), over the better of PyTorch's product and oneDNN's primitive: 18
shapes of 2 to 1,024 rows and 192 to 4,096 channels took 0.72 to 0.98, single rows 1.06 to
1.3, and results of 3 to 6 million elements 0.92 to 1.05. The largest error was 0.5 to 1.4 of
that of PyTorch's product.

With AVX-512 (AMD EPYC of Zen 4, 2026-11-30), over oneDNN's primitive: 24 shapes of at most
0.4 million results took 0.32 to 1.05, those of few rows least, and 1.00 to 1.10 from 32 rows
of 1,024 input channels on, whose rows share sets of the cache. The primitive took 0.82 to
0.98 of PyTorch's product from 2**24 multiplications on, and 1.0 to 6 before.
"""

import math
from functools import cache
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F

from xpurt.functional.winograd import PANEL, is_memory_of_host

_WITH_AVX512: Final = torch.backends.cpu.get_cpu_capability() == "AVX512"
MOST_RESULTS: Final = {"AVX2": 2 << 20, "AVX512": 3 << 17}.get(
    torch.backends.cpu.get_cpu_capability(), 0
)
_FEWEST_OF_PRIMITIVE: Final = 1 << 24  # multiplications
# Of `xpurt::row_linear`. One row of 2,048 and 16,384 channels took 1.09 of the time of
# reading the weight and two 1.28; the primitive 1.52 and 1.63. Of four rows it took 1.19
# of the primitive's time (AMD EPYC of Zen 4, one thread, 2026-12-01).
_MOST_ROWS: Final = 2
# Those that `xpurt::panel_linear` computes.
ACTIVATIONS: Final = ("none", "relu", "gelu")


def takes_panels(x: Tensor, weight: Tensor) -> bool:
    """Whether `xpurt::panel_linear` is expected to take less time than PyTorch's product
    and oneDNN's primitive. x: (..., in); weight: (out, in)."""
    if not (x.dtype == weight.dtype == torch.float32):
        return False
    rows, (columns, inner) = math.prod(x.shape[:-1]), weight.shape
    return (
        rows > 1
        and rows * columns <= MOST_RESULTS
        and (not _WITH_AVX512 or rows < 32 or inner < 1024)
        and -columns % PANEL * 16 <= columns
        and (x.device.type == "cpu" or is_memory_of_host(x))
    )


def takes_rows(x: Tensor, weight: Tensor, dtype: torch.dtype) -> bool:
    """Whether a product in `dtype` is that of a few rows with a weight in bfloat16, which
    `xpurt::row_linear` reads at the memory's rate. x: (..., in); weight: (out, in)."""
    return (
        dtype == torch.bfloat16
        and 0 < x.numel() <= _MOST_ROWS * x.shape[-1]
        and weight.numel() > 0
        and _multiplies_rows()
        and (x.device.type == "cpu" or is_memory_of_host(x))
    )


@cache
def _multiplies_rows() -> bool:
    return _WITH_AVX512 and bool(torch.cpu.get_capabilities().get("avx512_bf16"))


def takes_packed_weight(x: Tensor, weight: Tensor) -> bool:
    """Whether a product with a packed weight, by panels or by oneDNN's primitive, is
    expected to take less time than PyTorch's. x: (..., in); weight: (out, in)."""
    rows = math.prod(x.shape[:-1])
    return takes_panels(x, weight) or (
        _WITH_AVX512
        and x.dtype == weight.dtype == torch.float32
        and rows > 1
        and rows * weight.numel() >= _FEWEST_OF_PRIMITIVE
    )


def pack_panels(weight: Tensor) -> Tensor:
    """weight: (out, in). Returns (panels, in, PANEL), with zeros after the last column."""
    padded = F.pad(weight, (0, 0, 0, -weight.shape[0] % PANEL))
    return padded.reshape(-1, PANEL, weight.shape[1]).transpose(1, 2).contiguous()
