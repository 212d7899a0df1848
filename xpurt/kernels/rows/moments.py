"""Rows of means, variances, norms and counts over dimensions, computed by sums."""

from collections.abc import Sequence

import torch

from xpurt.kernels.kinds.decomposed import Decomposed

Dims = Sequence[int] | None
MANY = 4096  # elements whose mean is rounded by more than a few units


def real_type(x: torch.Tensor) -> torch.dtype:
    return x.real.dtype if x.is_complex() else x.dtype


def spread(
    self: torch.Tensor, dim: Dims, correction: float | None, keepdim: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Variance and mean, in the type of the sums. The elements are read twice: the mean
    is computed before the squares of the differences from it. The differences add up to
    the rounding of the mean, which the variance is corrected by (Chan, Golub and LeVeque,
    1983, "Algorithms for computing the sample variance")."""
    if not (self.is_floating_point() or self.is_complex()):
        raise RuntimeError("var and std only support floating point and complex dtypes")
    narrow = self.dtype in (torch.float16, torch.bfloat16)
    x = self.float() if narrow else self
    dims = list(range(x.dim())) if not dim else list(dim)
    mean = x.mean(dims, keepdim=True)
    away = x - mean
    count = 1
    for d in dims:
        count *= x.shape[d] if x.dim() else 1
    divisor = max(count - (1 if correction is None else correction), 0)
    squares = squared(away)
    if x.dim() == 0:
        return squares / divisor, mean
    squares = squares.sum(dims, keepdim=keepdim)
    if count > MANY:
        rest = away.sum(dims, keepdim=keepdim)
        squares = (squares - squared(rest) / count).clamp_(min=0)
        mean = mean + (rest / count).view(mean.shape)
    variance = squares / divisor
    return variance, mean if keepdim else mean.reshape(variance.shape)


def squared(x: torch.Tensor) -> torch.Tensor:
    if not x.is_complex():
        return x * x
    parts = torch.view_as_real(x)
    return (parts * parts).sum(-1)


def var(
    self: torch.Tensor,
    dim: Dims = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> torch.Tensor:
    """Raises RuntimeError for integers."""
    return spread(self, dim, correction, keepdim)[0].to(real_type(self))


def std(
    self: torch.Tensor,
    dim: Dims = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> torch.Tensor:
    return spread(self, dim, correction, keepdim)[0].sqrt().to(real_type(self))


def var_mean(
    self: torch.Tensor,
    dim: Dims = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    variance, mean = spread(self, dim, correction, keepdim)
    return variance.to(real_type(self)), mean.to(self.dtype)


def std_mean(
    self: torch.Tensor,
    dim: Dims = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    variance, mean = spread(self, dim, correction, keepdim)
    return variance.sqrt().to(real_type(self)), mean.to(self.dtype)


def count_nonzero(self: torch.Tensor, dim: Sequence[int]) -> torch.Tensor:
    return (self != 0).sum(list(dim))


def trace(self: torch.Tensor) -> torch.Tensor:
    """The sum of the diagonal. Raises RuntimeError if `self` is not a matrix."""
    if self.dim() != 2:
        raise RuntimeError("trace: expected a matrix")
    return self.diagonal().sum()


ROWS = (
    Decomposed("var", var, overloads=("correction", "correction_out")),
    Decomposed("std", std, overloads=("correction", "correction_out")),
    Decomposed("var_mean", var_mean, overloads=("correction",)),
    Decomposed("std_mean", std_mean, overloads=("correction",)),
    Decomposed("count_nonzero", count_nonzero, overloads=("dim_IntList",)),
    Decomposed("trace", trace),
    Decomposed("nansum"),
    Decomposed("linalg_vector_norm"),
    Decomposed("norm"),
)
