"""What all convolutions by Winograd's algorithm F(4x4, 3x3) share.

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
"""

from typing import Any, Final

import torch
from torch import Tensor

PRODUCTS: Final = 36  # numbers of a transformed tile
_POINTS: Final = (5 / 8, 3 / 2)  # A and B of the transforms of tiles


def is_allowed() -> bool:
    """Whether results may be less exact than those of a direct convolution."""
    mkldnn: Any = torch.backends.mkldnn
    found: str = mkldnn.conv.fp32_precision  # that of mkldnn or of all, if it has none
    return found != "ieee"


def transformed_weight(weight: Tensor) -> Tensor:
    """The weight of the products, in float32, computed in float64 on the host.

    weight: (out, in, 3, 3). Returns (36, in, out), on the weight's device.
    """
    a, b = _POINTS
    rows = [[1 / (a * a * b * b), 0.0, 0.0]]
    for point, other in ((a, b), (b, a)):
        scale = 2 * point**2 * (point**2 - other**2)
        for signed in (point, -point):
            rows.append([1 / scale, signed / scale, signed**2 / scale])
    rows.append([0.0, 0.0, 1.0])
    to = torch.tensor(rows, dtype=torch.float64)
    made = torch.einsum("ai,ocij,bj->abco", to, weight.cpu().double(), to)
    return made.flatten(0, 1).to(weight.device, torch.float32).contiguous()
