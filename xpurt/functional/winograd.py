"""Convolutions of 3x3 by Winograd's algorithm, for CPU tensors and for xpu tensors in
memory of the host.

Note [Winograd's numbers]
~~~~~~~~~~~~~~~~~~~~~~~~~
F(4x4, 3x3) computes a tile of 4x4 results from one of 6x6 pixels by 36 multiplications
per pair of channels instead of 144 (Winograd, 1980; Lavin and Gray, 2015).

The transforms add numbers of different magnitude, so the results are less exact than
those of a direct convolution. How much depends on the interpolation points. Those of
Lavin and Gray, 0, 1, -1, 2, -2, made errors of 4e-5 where direct convolutions made 2e-6
(largest of 204,800 results of standard deviation 1.4, 64 channels, float32). The points
here, 0, 5/8, -5/8, 3/2, -3/2, make errors of 1.1e-5, and their powers are exact in
float32. `torch.backends.mkldnn.conv.fp32_precision = "ieee"` keeps direct convolutions.

Only in float32: products of bfloat16 would round the transformed numbers.

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

With AVX2 the same shapes, with a ReLU, took 0.35 to 0.83, and 4 tiles of 512 channels 1.4
(AMD EPYC of Zen 3, 2026-11-30, beside other programs).
"""

from typing import Any, Final

import torch
from torch import Tensor

from xpurt import _C
from xpurt.functional.convolutions import Geometry

# Channels: the op takes images in channels_last or in blocks of these.
BLOCKS: Final = {"AVX2": (8, 16), "AVX512": (16,)}.get(
    torch.backends.cpu.get_cpu_capability(), ()
)

# The channels of a layer are multiples of these.
_IN_CHANNELS: Final = 16
_OUT_CHANNELS: Final = 32
_POINTS: Final = (5 / 8, 3 / 2)  # A and B of the transforms of tiles
_PRODUCTS: Final = 36  # numbers of a transformed tile
# Output channels that are multiplied at a time: two registers.
PANEL: Final = 16 if torch.backends.cpu.get_cpu_capability() == "AVX2" else 32
_TILE: Final = 4  # rows and columns of results
_MOST_MULTIPLICATIONS: Final = 0.5  # of those of a direct convolution
_LEAST_TILES: Final = 8  # per thread


def takes_winograd(
    weight: Tensor, geometry: Geometry, x: Tensor, least_tiles: int = _LEAST_TILES
) -> bool:
    """Whether `xpurt::winograd_conv2d` computes the convolution of images, and is
    expected to take less time than a direct one. weight: (out, in, ...).
    x: (batch, in, ...). least_tiles: per thread, for which the weight is read."""
    return (
        weight.shape[2:] == (3, 3)
        and geometry.stride == geometry.dilation == (1, 1)
        and geometry.groups == 1
        and x.dtype == torch.float32
        and weight.shape[1] % _IN_CHANNELS == 0
        and weight.shape[0] % _OUT_CHANNELS == 0
        and _pays(x.shape, geometry.padding, least_tiles)
        and _is_allowed()
        and bool(BLOCKS)
        and (x.device.type == "cpu" or is_memory_of_host(x))
    )


def pack_winograd_weight(weight: Tensor) -> Tensor:
    """weight: (out, in, 3, 3). Returns (36, out / PANEL, in, PANEL), in float32, on the
    weight's device. Computed in float64 on the host."""
    a, b = _POINTS
    rows = [[1 / (a * a * b * b), 0.0, 0.0]]
    for point, other in ((a, b), (b, a)):
        scale = 2 * point**2 * (point**2 - other**2)
        for signed in (point, -point):
            rows.append([1 / scale, signed / scale, signed**2 / scale])
    rows.append([0.0, 0.0, 1.0])
    to = torch.tensor(rows, dtype=torch.float64)
    made = torch.einsum("ai,ocij,bj->abco", to, weight.cpu().double(), to)
    panels = made.reshape(_PRODUCTS, weight.shape[1], -1, PANEL).transpose(1, 2)
    return panels.to(weight.device, torch.float32).contiguous()


def _pays(sizes: torch.Size, padding: tuple[int, ...], least_tiles: int) -> bool:
    images, _, height, width = sizes
    height, width = height + 2 * padding[0] - 2, width + 2 * padding[1] - 2
    tiles = images * -(-height // _TILE) * -(-width // _TILE)
    most = _MOST_MULTIPLICATIONS * 9 * images * height * width
    return _PRODUCTS * tiles <= most and tiles >= least_tiles * torch.get_num_threads()


def _is_allowed() -> bool:
    """Whether results may be less exact than those of a direct convolution."""
    return convolution_precision() != "ieee"


def convolution_precision() -> str:
    """The program's wish, `torch.backends.mkldnn.conv.fp32_precision`."""
    mkldnn: Any = torch.backends.mkldnn
    found: str = mkldnn.conv.fp32_precision  # that of mkldnn or of all, if it has none
    return found


def is_memory_of_host(x: Tensor) -> bool:
    """Whether the processor computes ops of the device on the same bytes, and may."""
    return _C.is_host(x.device.index or 0) and _C.kernel_policy() != "sycl"
