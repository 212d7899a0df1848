"""Rows of products of vectors and of sums of products, computed by matrix products."""

import torch

from xpurt import _C
from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import FLOATING_ONLY

# Terms that a product adds up one after the other. The sums of longer parts are added
# up by a reduction, whose error grows with the logarithm of their number, not with the
# number itself (Higham, 1993). The kernels also have more work-items then.
TERMS = 1024


def multiplied(mat: torch.Tensor, vec: torch.Tensor) -> torch.Tensor:
    """A matrix times a vector."""
    if not (mat.is_floating_point() or mat.is_complex()):
        return (mat * vec).sum(1, dtype=mat.dtype)
    column = vec.unsqueeze(1)
    parts = vec.shape[0] // TERMS
    # The sums of parts would be rounded to halves.
    if parts < 2 or mat.dtype in (torch.float16, torch.bfloat16):
        return torch.mm(mat, column).squeeze(1)
    end = parts * TERMS
    left = mat[:, :end].view(-1, parts, TERMS).transpose(0, 1)
    right = column[:end].view(parts, TERMS, 1)
    sums = torch.bmm(left, right).sum(0)
    if end < vec.shape[0]:
        sums = sums + torch.mm(mat[:, end:], column[end:])
    return sums.squeeze(1)


def dot(self: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Raises RuntimeError unless both are vectors of one size and type."""
    _C.meta_results("aten::dot", "", self, tensor)
    return multiplied(self.unsqueeze(0), tensor).squeeze(0)


def vdot(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    _C.meta_results("aten::vdot", "", self, other)
    return multiplied(self.conj_physical().unsqueeze(0), other).squeeze(0)


def added(
    self: torch.Tensor, product: torch.Tensor, beta: float, alpha: float
) -> torch.Tensor:
    """beta * self + alpha * product. If beta is 0, `self` is not read."""
    if not (self.is_floating_point() or self.is_complex()):
        beta, alpha = int(beta), int(alpha)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return product + (self if beta == 1 else self * beta)


def addmv(
    self: torch.Tensor,
    mat: torch.Tensor,
    vec: torch.Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
) -> torch.Tensor:
    """beta * self + alpha * (mat @ vec). Raises RuntimeError for sizes or types that do
    not fit."""
    _C.meta_results("aten::addmv", "", self, mat, vec)
    if mat.dtype in (torch.float16, torch.bfloat16):
        product = torch.addmm(
            self.expand(mat.shape[0]).unsqueeze(1),
            mat,
            vec.unsqueeze(1),
            beta=beta,
            alpha=alpha,
        )
        return product.squeeze(1)
    return added(self, multiplied(mat, vec), beta, alpha)


def addbmm(
    self: torch.Tensor,
    batch1: torch.Tensor,
    batch2: torch.Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
) -> torch.Tensor:
    """beta * self + alpha * (the sum of the products of batches), as one matrix
    product: the batches are joined along the dimension of its sum. Raises RuntimeError
    for sizes or types that do not fit."""
    _C.meta_results("aten::addbmm", "", self, batch1, batch2)
    batches, rows, inner = batch1.shape
    left = batch1.transpose(0, 1).reshape(rows, batches * inner)
    right = batch2.reshape(batches * inner, batch2.shape[2])
    if self.is_floating_point() or self.is_complex():
        return torch.addmm(self, left, right, beta=beta, alpha=alpha)
    product = (left.unsqueeze(2) * right).sum(1, dtype=self.dtype)
    return added(self, product, beta, alpha)


# The exponent is an int, as in C.
SCALED = Step(
    over="result",
    text="""
  long at[8];
  const long to = result_unravel(i, at);
  result_store(to, ldexp(self_load(self_at(at)), exponent_load(exponent_at(at))));
""",
)


def ldexp(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """self times 2 to the power of `other`. Of a float and an integer it is exact, if
    the result is in range. Raises NotImplementedError for a float and bools."""
    exact = self.is_floating_point() and not (
        other.is_floating_point() or other.is_complex()
    )
    if not exact:
        return self * torch.pow(2.0, other)
    if other.dtype == torch.bool:
        raise NotImplementedError("ldexp of bools")
    (laid_out,) = _C.meta_results("aten::add", "Tensor", self, other)
    result = torch.empty_strided(
        laid_out.shape, laid_out.stride(), dtype=self.dtype, device=self.device
    )
    torch.ops.xpurt.ldexp(
        self.expand(result.shape), other.int().expand(result.shape), result
    )
    return result


ROWS = (
    CustomKernel(
        "xpurt::ldexp",
        (SCALED,),
        FLOATING_ONLY,
        schema="(Tensor self, Tensor exponent, Tensor(a!) result) -> ()",
    ),
    Decomposed("ldexp", ldexp),
    Decomposed("dot", dot),
    Decomposed("vdot", vdot),
    Decomposed("addmv", addmv),
    Decomposed("addbmm", addbmm, same_type=True),
    Decomposed("addr"),
)
