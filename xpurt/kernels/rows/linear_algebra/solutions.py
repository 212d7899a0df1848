"""Rows of solutions, inverses and determinants by the LU factorization."""

import torch
from torch import Tensor

from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.rows.linear_algebra.batches import (
    has_kernels,
    in_one_batch,
    results_of,
    rows_in_one_batch,
    set_to_identity,
)
from xpurt.kernels.rows.linear_algebra.lu import lu_factor_ex
from xpurt.kernels.rows.linear_algebra.panels import KIND
from xpurt.kernels.rows.linear_algebra.triangular import solve_in_place

ATEN = torch.ops.aten


def solve_by(
    factors: Tensor, pivots: Tensor, x: Tensor, left: bool = True, adjoint: bool = False
) -> None:
    """Replaces `x` by the solution. The factors may lack dimensions of the batch."""
    if x.numel() == 0:
        return
    batch = x.shape[:-2]
    mat = in_one_batch(factors.expand(*batch, *factors.shape[-2:]))
    rows = rows_in_one_batch(pivots.expand(*batch, pivots.shape[-1]))
    # A solution from the right is one from the left with everything transposed.
    rhs = in_one_batch(x)
    rhs = rhs if left else rhs.mT
    if adjoint:
        mat = mat.conj().resolve_conj()
    if left == adjoint:
        solve_in_place(mat.mT, rhs, upper=False)
        solve_in_place(mat.mT, rhs, upper=True, unit=True)
        torch.ops.xpurt.exchange_rows(rhs, rows, True)
    else:
        torch.ops.xpurt.exchange_rows(rhs, rows, False)
        solve_in_place(mat, rhs, upper=False, unit=True)
        solve_in_place(mat, rhs, upper=True)


def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    op = ATEN.linalg_lu_solve
    if not has_kernels(LU, B):
        return op(LU, pivots, B, left=left, adjoint=adjoint)  # type: ignore[no-any-return]
    (result,) = results_of(op, LU, pivots, B, left=left, adjoint=adjoint)
    result.copy_(B)
    solve_by(LU, pivots, result, left, adjoint)
    return result


def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    op = ATEN._linalg_solve_ex
    if not has_kernels(A, B):
        return op(A, B, left=left, check_errors=check_errors)  # type: ignore[no-any-return]
    result, *_ = results_of(op, A, B, left=left)
    factors, pivots, info = lu_factor_ex(A)
    if check_errors:
        torch._linalg_check_errors(
            info, "torch.linalg.solve_ex", is_matrix=A.dim() == 2
        )
    is_vector = B.dim() == 1 or (A.dim() - 1 == B.dim() and B.shape == A.shape[:-1])
    x = result.new_empty((*result.shape, 1)) if is_vector else result
    x.copy_(B.unsqueeze(-1) if is_vector else B)
    solve_by(factors, pivots, x, left)
    if is_vector:
        result.copy_(x.squeeze(-1))
    return result, factors, pivots, info


def inv_ex(A: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    op = ATEN.linalg_inv_ex
    if not has_kernels(A):
        return op(A, check_errors=check_errors)  # type: ignore[no-any-return]
    inverse, _ = results_of(op, A)
    factors, pivots, info = lu_factor_ex(A)
    if check_errors:
        torch._linalg_check_errors(info, "linalg.inv_ex", is_matrix=A.dim() == 2)
    solve_by(factors, pivots, set_to_identity(inverse))
    return inverse, info


def sign_of(pivots: Tensor, like: Tensor) -> Tensor:
    """The determinants of the exchanges of rows: 1 or -1."""
    steps = torch.arange(1, pivots.shape[-1] + 1, device=pivots.device)
    return (1 - 2 * ((pivots != steps).sum(-1) % 2)).to(like.dtype)


def is_factorized_transposed(A: Tensor) -> bool:
    """Whether PyTorch's determinants factorize the transpose, as derivatives expect."""
    return A.is_contiguous() and not A.is_complex()


def det(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if not has_kernels(A):
        return ATEN._linalg_det(A)  # type: ignore[no-any-return]
    results_of(ATEN._linalg_det, A)  # raises for arguments that do not fit
    factors, pivots, _ = lu_factor_ex(A.mT if is_factorized_transposed(A) else A)
    diagonal = factors.diagonal(dim1=-2, dim2=-1)
    return diagonal.prod(-1) * sign_of(pivots, factors), factors, pivots


def slogdet(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if not has_kernels(A):
        return ATEN._linalg_slogdet(A)  # type: ignore[no-any-return]
    results_of(ATEN._linalg_slogdet, A)
    factors, pivots, _ = lu_factor_ex(A.mT if is_factorized_transposed(A) else A)
    diagonal = factors.diagonal(dim1=-2, dim2=-1)
    sign = diagonal.sgn().prod(-1) * sign_of(pivots, factors)
    return sign, diagonal.abs().log().sum(-1), factors, pivots


ROWS = (
    Decomposed("linalg_lu_solve", lu_solve, KIND, native_on_cpu=True, lays_out=True),
    Decomposed("_linalg_solve_ex", solve_ex, KIND, native_on_cpu=True, lays_out=True),
    Decomposed("linalg_inv_ex", inv_ex, KIND, native_on_cpu=True, lays_out=True),
    Decomposed("_linalg_det", det, KIND, native_on_cpu=True, lays_out=True),
    Decomposed("_linalg_slogdet", slogdet, KIND, native_on_cpu=True, lays_out=True),
)
