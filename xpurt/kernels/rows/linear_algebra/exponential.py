"""The row of the exponential of matrices."""

import math

import torch
from torch import Tensor

from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.rows.linear_algebra.batches import (
    has_kernels,
    in_one_batch,
    results_of,
    set_to_identity,
)
from xpurt.kernels.rows.linear_algebra.panels import KIND

# Powers that are computed, and blocks of the Taylor polynomial: its degree is their
# product. The rest is below the rounding error for matrices of norm 1.
_IN_FLOAT = (3, 4)
_IN_DOUBLE = (5, 4)
_MOST_HALVINGS = 1100  # the largest double is below 2^1024


def taylor(x: Tensor, block: int, blocks: int) -> Tensor:
    """The polynomial by Paterson and Stockmeyer, "On the Number of Nonscalar
    Multiplications Necessary to Evaluate Polynomials", 1973."""
    powers = [set_to_identity(torch.empty_like(x)), x]
    while len(powers) <= block:
        powers.append(torch.bmm(powers[-1], x))
    result = powers[block] / math.factorial(block * blocks)
    for first in reversed(range(0, block * blocks, block)):
        if first + block < block * blocks:
            result = torch.bmm(powers[block], result)
        for k in range(block):
            result = result + powers[k] / math.factorial(first + k)
    return result


def halvings_of(norms: list[float]) -> list[int]:
    """How often a matrix of this norm is halved until it is at most 1. Not a finite
    norm: the result is not finite either, by any number of halvings."""
    finite = (norm if math.isfinite(norm) else 1.0 for norm in norms)
    return [min(max(math.frexp(n)[1], 0), _MOST_HALVINGS) for n in finite]


def matrix_exp(self: Tensor) -> Tensor:
    """The exponential of a matrix divided by a power of two, squared as often: Moler,
    Van Loan: "Nineteen Dubious Ways to Compute the Exponential of a Matrix", 2003."""
    op = torch.ops.aten.linalg_matrix_exp
    if not has_kernels(self):
        return op(self)  # type: ignore[no-any-return]
    (result,) = results_of(op, self)
    if result.numel() == 0:
        return result
    if self.shape[-1] == 1:
        return result.copy_(self.exp())
    matrices = in_one_batch(self).contiguous()
    norms = matrices.abs().sum(-2).amax(-1)
    halvings = halvings_of(norms.tolist())
    scales = torch.tensor([2.0**-k for k in halvings], dtype=norms.dtype)
    scaled = matrices * scales.to(self.device).view(-1, 1, 1)
    wide = self.dtype in (torch.float64, torch.complex128)
    power = taylor(scaled, *(_IN_DOUBLE if wide else _IN_FLOAT))
    for k in range(max(halvings)):
        squared = torch.bmm(power, power)
        if k < min(halvings):
            power = squared
            continue
        goes_on = torch.tensor([k < each for each in halvings], device=self.device)
        power = torch.where(goes_on.view(-1, 1, 1), squared, power)
    return result.copy_(power.view(self.shape))


ROWS = (
    Decomposed(
        "linalg_matrix_exp", matrix_exp, KIND, native_on_cpu=True, lays_out=True
    ),
)
