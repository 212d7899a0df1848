"""Rows of weight normalization: Salimans, Kingma, 2016. A weight is the product of its
norm `g` and the direction of `v`; the norms are those along all dimensions but `dim`,
the first or the last one."""

import torch
from torch import Tensor

from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import FLOATING_ONLY


def other_dims(v: Tensor, dim: int) -> list[int]:
    return [d for d in range(v.dim()) if d != dim % v.dim()]


def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    wide = torch.float64 if v.dtype == torch.float64 else torch.float32
    x, dims = v.to(wide, memory_format=torch.contiguous_format), other_dims(v, dim)
    if dims:
        norms = torch.linalg.vector_norm(x, 2, dims, keepdim=True)
    else:
        norms = x.abs()
    return (x * (g / norms)).to(v.dtype), norms


def weight_norm_backward(
    grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    wide = saved_norms.dtype
    grad, v, g = (each.to(wide) for each in (grad_w, saved_v, saved_g))
    products, dims = grad * v, other_dims(v, dim)
    sums = products.sum(dims, keepdim=True) if dims else products
    along = sums / saved_norms
    grad_v = (g / saved_norms) * (grad - v * (along / saved_norms))
    return grad_v.to(saved_v.dtype), along.to(saved_g.dtype)


ROWS = (
    Decomposed("_weight_norm_interface", weight_norm, FLOATING_ONLY),
    Decomposed("_weight_norm_interface_backward", weight_norm_backward, FLOATING_ONLY),
)
