"""Rows of solutions with a triangular matrix."""

import torch
from torch import Tensor

from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.rows.linear_algebra.batches import (
    has_kernels,
    in_one_batch,
    results_of,
)
from xpurt.kernels.rows.linear_algebra.panels import KIND, WIDTH

ATEN = torch.ops.aten


def solve_in_place(mat: Tensor, x: Tensor, upper: bool, unit: bool = False) -> None:
    """Replaces `x` by the solution of mat X = x, in blocks of rows. Both have three
    dimensions; the other triangle of `mat` is not read."""
    size = mat.shape[-1]
    begins = range(0, size, WIDTH)
    for begin in reversed(begins) if upper else begins:
        end = min(begin + WIDTH, size)
        block = x[:, begin:end]
        torch.ops.xpurt.substitute(block, mat[:, begin:end, begin:end], upper, unit)
        rest = slice(0, begin) if upper else slice(end, size)
        if mat[:, rest].shape[1] > 0:
            # The kernel of products takes no operands that share memory with a result.
            x[:, rest].baddbmm_(mat[:, rest, begin:end], block.clone(), alpha=-1)


def solve_triangular(
    self: Tensor,
    B: Tensor,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Tensor:
    op, how = ATEN.linalg_solve_triangular, {"left": left, "upper": upper}
    if not has_kernels(self, B):
        return op(self, B, unitriangular=unitriangular, **how)  # type: ignore[no-any-return]
    (result,) = results_of(op, self, B, unitriangular=unitriangular, **how)
    mats = self.expand(*result.shape[:-2], *self.shape[-2:])
    if mats.is_conj() and mats.mT.is_contiguous():
        result = result.new_empty(
            result.shape
        )  # as PyTorch, which meta tensors can't tell
    if result.numel() == 0:
        return result
    result.copy_(B)
    mat = in_one_batch(mats.resolve_conj())
    x = in_one_batch(result)
    if left:
        solve_in_place(mat, x, upper, unitriangular)
    else:
        solve_in_place(mat.mT, x.mT, not upper, unitriangular)
    return result


def triangular_solve(
    self: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> tuple[Tensor, Tensor]:
    op, how = ATEN.triangular_solve, (upper, transpose, unitriangular)
    if not has_kernels(self, A):
        return op(self, A, *how)  # type: ignore[no-any-return]
    result, copied = results_of(op, self, A, *how)
    copied.copy_(A)
    if result.numel() > 0:
        result.copy_(self)
        mat = in_one_batch(copied)
        solve_in_place(
            mat.mT if transpose else mat,
            in_one_batch(result),
            upper != transpose,
            unitriangular,
        )
    return result, copied


ROWS = (
    Decomposed(
        "linalg_solve_triangular",
        solve_triangular,
        KIND,
        native_on_cpu=True,
        lays_out=True,
    ),
    Decomposed(
        "triangular_solve", triangular_solve, KIND, native_on_cpu=True, lays_out=True
    ),
)
