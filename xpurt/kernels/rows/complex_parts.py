"""Rows of complex numbers made from two real ones."""

import torch
from torch import Tensor

from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import Kind

_TYPES = (torch.float16, torch.float32, torch.float64)


def are_parts(first: Tensor, second: Tensor) -> bool:
    """Whether PyTorch makes complex numbers from these; if not, it raises."""
    return first.dtype == second.dtype and first.dtype in _TYPES


def complex_numbers(real: Tensor, imag: Tensor) -> Tensor:
    if not are_parts(real, imag):
        return torch.complex(real, imag)
    like = (real + imag) if real.shape != imag.shape else real
    out = torch.empty_like(like, dtype=like.dtype.to_complex())
    out.real.copy_(real)
    out.imag.copy_(imag)
    return out


def polar(abs: Tensor, angle: Tensor) -> Tensor:
    if not are_parts(abs, angle):
        return torch.polar(abs, angle)
    return complex_numbers(abs * angle.cos(), abs * angle.sin())


KIND = Kind("fdh")
ROWS = (
    Decomposed("complex", complex_numbers, KIND, result="complex", lays_out=True),
    Decomposed("polar", polar, KIND, result="complex", lays_out=True),
)
