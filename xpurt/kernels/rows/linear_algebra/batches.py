"""Matrices of a batch of any rank, and results like those of PyTorch's CPU kernels."""

from typing import Any

import torch
from torch import Tensor

from xpurt import _C

TYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def results_of(op: Any, *arguments: Any, **named: Any) -> list[Tensor]:
    """Uninitialized results, with the sizes, types and strides of the op's. Raises what
    the op raises for arguments that do not fit."""
    device = next(each.device for each in arguments if isinstance(each, Tensor))
    return [
        torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device=device)
        for each in _C.meta_results(f"aten::{op.__name__}", "", *arguments, **named)
    ]


def has_kernels(*tensors: Tensor) -> bool:
    """Whether the kernels compute in the type of the tensors."""
    return all(each.dtype in TYPES for each in tensors)


def in_one_batch(matrices: Tensor) -> Tensor:
    """Matrices as the last two of three dimensions. Memory of new results is shared."""
    if matrices.numel() == 0:
        return matrices.new_empty((0, *matrices.shape[-2:]))
    return matrices.reshape(-1, *matrices.shape[-2:])


def rows_in_one_batch(rows: Tensor) -> Tensor:
    return in_one_batch(rows.unsqueeze(-2)).squeeze(-2)


def set_to_identity(matrices: Tensor) -> Tensor:
    matrices.zero_().diagonal(dim1=-2, dim2=-1).fill_(1)
    return matrices


def adjoint(matrices: Tensor) -> Tensor:
    return matrices.mH.resolve_conj()
