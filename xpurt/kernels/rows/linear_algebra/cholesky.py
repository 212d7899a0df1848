"""Rows of the Cholesky factorization, and of solutions by it."""

import torch
from torch import Tensor

from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.rows.linear_algebra.batches import (
    adjoint,
    has_kernels,
    in_one_batch,
    results_of,
    set_to_identity,
)
from xpurt.kernels.rows.linear_algebra.panels import KIND, WIDTH
from xpurt.kernels.rows.linear_algebra.triangular import solve_in_place

ATEN = torch.ops.aten


def factorize(matrices: Tensor, info: Tensor) -> None:
    """Replaces the lower triangles by their factors, panel by panel, each of which
    takes the product of the columns before it. `info` has one number per matrix."""
    size = matrices.shape[-1]
    for begin in range(0, size, WIDTH):
        end = min(begin + WIDTH, size)
        panel = matrices[:, begin:, begin:end]
        if begin > 0:
            done = matrices[:, begin:, :begin]
            panel.sub_(torch.bmm(done, adjoint(done[:, : end - begin])))
        torch.ops.xpurt.cholesky_panel(panel, info, begin)


def cholesky_ex(
    self: Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, Tensor]:
    if not has_kernels(self):
        return ATEN.linalg_cholesky_ex(self, upper=upper, check_errors=check_errors)  # type: ignore[no-any-return]
    factor, info = results_of(ATEN.linalg_cholesky_ex, self, upper=upper)
    info.zero_()
    if factor.numel() == 0:
        return factor, info
    factor.copy_(self)
    matrices = in_one_batch(factor)
    # The upper factor is the transposed lower one of the transposed matrix.
    factorize(matrices.mT if upper else matrices, info.view(-1))
    if upper:
        factor.triu_()
    else:
        factor.tril_()
    if check_errors:
        torch._linalg_check_errors(
            info, "linalg.cholesky_ex", is_matrix=self.dim() == 2
        )
    return factor, info


def solve(factor: Tensor, x: Tensor, upper: bool) -> None:
    """Replaces `x` by the solution with the product of the factor and its adjoint."""
    lower = adjoint(factor) if upper else factor
    solve_in_place(lower, x, upper=False)
    solve_in_place(adjoint(lower), x, upper=True)


def cholesky_solve(self: Tensor, A: Tensor, upper: bool) -> Tensor:
    if not has_kernels(self, A):
        return ATEN._cholesky_solve_helper(self, A, upper)  # type: ignore[no-any-return]
    (result,) = results_of(ATEN._cholesky_solve_helper, self, A, upper)
    if result.numel() > 0:
        result.copy_(self)
        solve(in_one_batch(A), in_one_batch(result), upper)
    return result


def cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor:
    if not has_kernels(self):
        return ATEN.cholesky_inverse(self, upper)  # type: ignore[no-any-return]
    (result,) = results_of(ATEN.cholesky_inverse, self, upper)
    if result.numel() > 0:
        solve(in_one_batch(self), in_one_batch(set_to_identity(result)), upper)
    return result


ROWS = (
    Decomposed(
        "linalg_cholesky_ex", cholesky_ex, KIND, native_on_cpu=True, lays_out=True
    ),
    Decomposed(
        "_cholesky_solve_helper",
        cholesky_solve,
        KIND,
        native_on_cpu=True,
        lays_out=True,
    ),
    Decomposed(
        "cholesky_inverse", cholesky_inverse, KIND, native_on_cpu=True, lays_out=True
    ),
)
