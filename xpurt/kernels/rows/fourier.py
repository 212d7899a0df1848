"""Rows of Fourier transforms along any dimensions.

A line is transformed by passes, one per factor of its length (Cooley, Tukey: "An
Algorithm for the Machine Calculation of Complex Fourier Series", 1965). A length with a
larger prime factor becomes a convolution (Bluestein: "A Linear Filtering Approach to
the Computation of the Discrete Fourier Transform", 1970).
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import Kind
from xpurt.kernels.rows.fourier_passes import KIND, RADICES
from xpurt.kernels.rows.fourier_passes import ROWS as PASSES

ATEN = torch.ops.aten


def factors_of(length: int) -> list[int] | None:
    """Radices whose product is the length. None if there are none."""
    found = []
    for radix in RADICES:
        while length % radix == 0:
            found.append(radix)
            length //= radix
    return found if length == 1 else None


def table_of(length: int, period: int, chirp: bool, like: Tensor) -> Tensor:
    roots = like.new_empty(length)
    torch.ops.xpurt.roots_of_unity(roots, period, chirp)
    return roots


def by_passes(x: Tensor, factors: list[int], inverse: bool, scale: float) -> Tensor:
    """The transform along dimension 1 of three."""
    outer, length, inner = x.shape
    roots = table_of(length, length, False, x)
    spare: list[Tensor] = []
    left = length
    for number, radix in enumerate(factors):
        left //= radix
        out = spare.pop() if spare else torch.empty_like(x)
        torch.ops.xpurt.fourier_pass(
            x.view(outer, radix, left, inner),
            roots,
            out.view(outer, left, radix, inner),
            inverse,
            scale if left == 1 else 1.0,
            str(radix),
        )
        if number > 0:  # the first operand may be the caller's
            spare.append(x)
        x, inner = out, inner * radix
    return x


def by_convolution(x: Tensor, inverse: bool, scale: float) -> Tensor:
    """The same for any length: the product of two roots is the quotient of the squares'
    roots of a sum and of both numbers, so the transform is a convolution with them."""
    outer, length, inner = x.shape
    padded = 1 << (2 * length - 2).bit_length()
    factors = factors_of(padded)
    assert factors is not None
    chirp = table_of(length, 2 * length, True, x)
    chirp = chirp.conj_physical() if inverse else chirp
    filtered = x.new_zeros(1, padded, 1)
    filtered[0, :length, 0] = chirp.conj_physical()
    filtered[0, padded - length + 1 :, 0] = chirp[1:].flip(0).conj_physical()
    filtered = by_passes(filtered, factors, False, 1.0)
    signal = x.new_zeros(outer, padded, inner)
    torch.mul(x, chirp.view(1, -1, 1), out=signal[:, :length])
    signal = by_passes(signal, factors, False, 1.0)
    signal = by_passes(signal * filtered, factors, True, scale / padded)
    return signal[:, :length] * chirp.view(1, -1, 1)


def along(x: Tensor, dim: int, inverse: bool, scale: float) -> Tensor:
    """The transform of a contiguous tensor along one dimension."""
    length = x.shape[dim]
    if x.numel() == 0:
        return x
    lines = x.view(math.prod(x.shape[:dim]), length, math.prod(x.shape[dim + 1 :]))
    factors = factors_of(length)
    if factors is None:
        found = by_convolution(lines, inverse, scale)
    elif factors:
        found = by_passes(lines, factors, inverse, scale)
    else:
        found = lines * scale
    return found.view(x.shape)


def scale_of(lengths: Sequence[int], normalization: int) -> float:
    """PyTorch's modes: 0, no factor; 1, by the root of the length; 2, by the length."""
    return float(math.prod(lengths)) ** (0, -0.5, -1)[normalization]


def order_of(x: Tensor, dims: Sequence[int], last: int | None = None) -> list[int]:
    """The order of dimensions in which MKL's results are contiguous: those along which
    it does not transform, then the others, each by decreasing strides of the operand;
    then `last`."""
    by_stride = sorted(range(x.dim()), key=lambda d: -x.stride()[d])
    chosen = [d % x.dim() for d in dims]
    kept = [d for d in by_stride if d not in chosen and d != last]
    return [
        *kept,
        *sorted(chosen, key=lambda d: -x.stride()[d]),
        *([] if last is None else [last]),
    ]


def in_order(x: Tensor, order: list[int], dtype: torch.dtype) -> Tensor:
    """The elements, with dimensions in this order, contiguous."""
    moved = x.permute(order)
    if moved.dtype == dtype and moved.is_contiguous() and not moved.is_conj():
        return moved.resolve_neg()
    return torch.empty(moved.shape, dtype=dtype, device=x.device).copy_(moved)


def in_former_order(x: Tensor, order: list[int]) -> Tensor:
    return x.permute(sorted(range(len(order)), key=order.__getitem__))


def transformed(
    x: Tensor, order: list[int], dims: Sequence[int], inverse: bool, scale: float
) -> Tensor:
    """The transform of `x`, whose dimensions are in `order`, along `dims`."""
    for number, dim in enumerate(dims):
        x = along(x, order.index(dim), inverse, scale if number == 0 else 1.0)
    return x


def c2c(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    if not dim:
        return self.clone()
    dims = [d % self.dim() for d in dim]
    order = order_of(self, dims)
    scale = scale_of([self.shape[d] for d in dims], normalization)
    x = in_order(self, order, self.dtype)
    found = transformed(x, order, dims, not forward, scale)
    return in_former_order(found, order)


def r2c(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    *dims, last = [d % self.dim() for d in dim]
    order = order_of(self, dims, last)
    scale = scale_of([self.shape[d] for d in (*dims, last)], normalization)
    x = in_order(self, order, self.dtype.to_complex())
    x = along(x, x.dim() - 1, False, scale)
    if onesided:
        x = x[..., : self.shape[last] // 2 + 1].contiguous()
    return in_former_order(transformed(x, order, dims, False, 1.0), order)


def c2r(
    self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int
) -> Tensor:
    *dims, last = [d % self.dim() for d in dim]
    half = last_dim_size // 2 + 1
    fits = self.shape[last] in (half, last_dim_size) and last_dim_size > 0
    if not fits:
        return ATEN._fft_c2r(self, dim, normalization, last_dim_size)  # type: ignore[no-any-return]
    x = c2c(self, dims, normalization, False) if dims else self
    order = order_of(x, (), last)
    x = x.permute(order)
    whole = torch.empty((*x.shape[:-1], last_dim_size), dtype=x.dtype, device=x.device)
    whole[..., :half].copy_(x[..., :half])
    if last_dim_size > half:
        mirrored = x[..., 1 : last_dim_size - half + 1].flip(-1)
        whole[..., half:].copy_(mirrored.conj())
    scale = scale_of([last_dim_size], normalization)
    found = along(whole, whole.dim() - 1, True, scale)
    return in_former_order(found.real.contiguous(), order)


REAL = Kind("fd")
ROWS = (
    *PASSES,
    Decomposed("_fft_c2c", c2c, KIND, of_kind=True, native_on_cpu=True),
    Decomposed(
        "_fft_r2c", r2c, REAL, of_kind=True, native_on_cpu=True, result="complex"
    ),
    Decomposed("_fft_c2r", c2r, KIND, of_kind=True, native_on_cpu=True, result="real"),
)
