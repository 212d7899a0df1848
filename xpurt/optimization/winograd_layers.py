"""Convolutions of 3x3 by Winograd's algorithm, for CPU tensors and for xpu tensors in
memory of the host.

Note [Where Winograd's algorithm pays]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
The rule is of the shape alone, so that a model computes the same values in each run. It
was measured beside oneDNN's direct convolutions, with an addition and a ReLU (AMD EPYC
with AVX-512, one thread, processor time, 2026-11-26): 18 shapes of 1 to 32 images of 3x3
to 112x112 and 16 to 512 channels. Where the tiles made at most half of the
multiplications, calls took 0.21 to 0.61 of the time. Cut tiles compute results that are
not used: images of 5x5 need 0.64 of the multiplications and took 0.9 to 1.1. Few tiles
don't pay for reading the weight, which is four times that of a direct convolution: 4
tiles of 512 channels took 0.66, and 8 took 0.46. Each thread has to have as many.
"""

from functools import cache
from typing import Any, Final

import torch
from torch import Tensor

from xpurt import _C
from xpurt.kernels import get_kernel_policy
from xpurt.kernels.winograd import PRODUCTS, is_allowed, transformed_weight
from xpurt.mapping import current_placement

_LANES: Final = 16  # input channels that are transformed at a time
_PANEL: Final = 32  # output channels that are multiplied at a time
_TILE: Final = 4  # rows and columns of results
_MOST_MULTIPLICATIONS: Final = 0.5  # of those of a direct convolution
_LEAST_TILES: Final = 8  # per thread


def takes_winograd(weight: Tensor, geometry: Any, x: Tensor) -> bool:
    """Whether the algorithm computes the convolution of images in channels_last, and is
    expected to take less time than a direct one. weight: (out, in, ...).
    x: (batch, in, ...)."""
    return (
        weight.shape[2:] == (3, 3)
        and geometry.stride == geometry.dilation == (1, 1)
        and geometry.groups == 1
        and x.dtype == torch.float32
        and weight.shape[1] % _LANES == 0
        and weight.shape[0] % _PANEL == 0
        and _pays(x.shape, geometry.padding)
        and is_allowed()
        and _has_lanes()
        and (x.device.type == "cpu" or _is_memory_of_host(x))
    )


def pack_winograd_weight(weight: Tensor) -> Tensor:
    """weight: (out, in, 3, 3). Returns (36, out / 32, in, 32), in float32."""
    made = transformed_weight(weight)
    panels = made.reshape(*made.shape[:2], -1, _PANEL)
    return panels.transpose(1, 2).contiguous()


def _pays(sizes: torch.Size, padding: tuple[int, int]) -> bool:
    images, _, height, width = sizes
    height, width = height + 2 * padding[0] - 2, width + 2 * padding[1] - 2
    tiles = images * -(-height // _TILE) * -(-width // _TILE)
    most = _MOST_MULTIPLICATIONS * 9 * images * height * width
    return PRODUCTS * tiles <= most and tiles >= _LEAST_TILES * torch.get_num_threads()


@cache
def _has_lanes() -> bool:
    return torch.backends.cpu.get_cpu_capability() == "AVX512"


def _is_memory_of_host(x: Tensor) -> bool:
    """Whether the processor computes ops of the device on the same bytes, and may."""
    index = x.device.index or 0
    devices = current_placement().ordinals[index]
    return (
        [device.kind for device in devices] == ["cpu"]
        and _C.host_reads(index)
        and get_kernel_policy() != "sycl"
    )
