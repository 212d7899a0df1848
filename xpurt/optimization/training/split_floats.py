"""Float32 numbers as two halves: bfloat16 numbers, and the 16 bits below them.

Note [Split floats]
~~~~~~~~~~~~~~~~~~~
The upper half is the number rounded to bfloat16, to the nearest, ties away from zero.
The lower half is what rounding lost, in steps of the float32 number, as a signed
integer: bits = (upper << 16) + lower. So the halves give the number back exactly, in 4
bytes, where a float32 number beside its bfloat16 copy takes 6. A number that rounds to
infinity comes back too. A NaN stays a NaN in the upper half, unless its payload has the
highest 16 bits all set, which no arithmetic makes.
Source: Intel Extension for PyTorch, split SGD (2021), with unsigned halves that are cut
instead of rounded.
"""

import torch
from torch import Tensor


def split(x: Tensor) -> tuple[Tensor, Tensor]:
    """The halves of a float32 tensor: bfloat16 and int16, each in its shape."""
    upper = torch.empty_like(x, dtype=torch.bfloat16)
    lower = torch.empty_like(x, dtype=torch.int16)
    split_into(x.detach().clone(), upper, lower)
    return upper, lower


@torch.no_grad()
def split_into(x: Tensor, upper: Tensor, lower: Tensor) -> None:
    """Writes the halves of a float32 tensor, whose memory is used up. Counts as a write
    to `upper`, for autograd too."""
    bits = x.view(torch.int32)
    lower.copy_(bits)  # of a wider integer the lowest bits are kept
    bits.add_(0x8000).bitwise_right_shift_(16)
    upper.view(torch.int16).copy_(bits)


@torch.no_grad()
def join(upper: Tensor, lower: Tensor, out: Tensor) -> Tensor:
    """Writes the float32 numbers of the halves to `out`, and returns it."""
    bits = out.view(torch.int32).copy_(upper.view(torch.int16))
    bits.bitwise_left_shift_(16).add_(lower)
    return out
