"""Rows of the LU factorization with partial pivoting."""

import torch
from torch import Tensor

from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.rows.linear_algebra.batches import (
    has_kernels,
    in_one_batch,
    results_of,
    rows_in_one_batch,
)
from xpurt.kernels.rows.linear_algebra.panels import KIND, WIDTH

ATEN = torch.ops.aten


def factorize(mat: Tensor, pivots: Tensor, info: Tensor) -> None:
    """Replaces the matrices by their factors. `pivots` has a row per matrix, `info` a
    number, the position from 1 of the first pivot that is zero."""
    steps = pivots.shape[-1]
    for begin in range(0, steps, WIDTH):
        end = min(begin + WIDTH, steps)
        panel = mat[:, begin:, begin:end]
        torch.ops.xpurt.lu_panel(panel, pivots, info, begin)
        torch.ops.xpurt.lu_columns(mat, pivots, begin, end - begin)
        rest = mat[:, end:, end:]
        if rest.numel() > 0:
            # The kernel of products takes no operands that share memory with a result.
            left, right = mat[:, end:, begin:end], mat[:, begin:end, end:]
            rest.baddbmm_(left.clone(), right.clone(), alpha=-1)


def lu_factor_ex(
    A: Tensor, *, pivot: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Without pivots PyTorch's CPU kernel raises."""
    if not (has_kernels(A) and pivot):
        return ATEN.linalg_lu_factor_ex(A, pivot=pivot, check_errors=check_errors)  # type: ignore[no-any-return]
    factors, pivots, info = results_of(ATEN.linalg_lu_factor_ex, A)
    info.zero_()
    if factors.numel() > 0:
        factors.copy_(A)
        factorize(in_one_batch(factors), rows_in_one_batch(pivots), info.view(-1))
    if check_errors:
        torch._linalg_check_errors(
            info, "torch.linalg.lu_factor_ex", is_matrix=A.dim() == 2
        )
    return factors, pivots, info


def order_of(pivots: Tensor, size: int) -> Tensor:
    """The rows' numbers in the order after the exchanges that the pivots stand for."""
    order = torch.arange(size, device=pivots.device)
    order = order.expand(*pivots.shape[:-1], size).contiguous()
    if pivots.numel() > 0:
        rows = rows_in_one_batch(order)
        torch.ops.xpurt.exchange_rows(
            rows.unsqueeze(-1), rows_in_one_batch(pivots), False
        )
    return order


def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    op, how = ATEN.lu_unpack, (unpack_data, unpack_pivots)
    if not has_kernels(LU_data):
        return op(LU_data, LU_pivots, *how)  # type: ignore[no-any-return]
    p, lower, upper = results_of(op, LU_data, LU_pivots, *how)
    if unpack_data:
        steps = min(LU_data.shape[-2:])
        lower.copy_(LU_data[..., :steps]).tril_(-1)
        lower.diagonal(dim1=-2, dim2=-1).fill_(1)
        upper.copy_(LU_data[..., :steps, :]).triu_()
    if unpack_pivots:
        size = LU_data.shape[-2]
        rows = torch.arange(size, device=LU_data.device).unsqueeze(-1)
        p.copy_(rows == order_of(LU_pivots, size).unsqueeze(-2))
    return p, lower, upper


def lu(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    if not (has_kernels(A) and pivot):
        return ATEN.linalg_lu(A, pivot=pivot)  # type: ignore[no-any-return]
    results_of(ATEN.linalg_lu, A)  # raises for arguments that do not fit
    factors, pivots, _ = lu_factor_ex(A)
    return lu_unpack(factors, pivots)


ROWS = (
    Decomposed(
        "linalg_lu_factor_ex", lu_factor_ex, KIND, native_on_cpu=True, lays_out=True
    ),
    Decomposed("lu_unpack", lu_unpack, KIND, native_on_cpu=True, lays_out=True),
    Decomposed("linalg_lu", lu, KIND, native_on_cpu=True, lays_out=True),
)
