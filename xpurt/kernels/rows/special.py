"""Rows of special functions. Their definitions are in templates of their own, which
name the sources of the algorithms."""

from math import factorial, inf
from typing import Any

import torch
from torch import Tensor

from xpurt import _C
from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import FLOATING, FLOATING_ONLY, Kind, Row

MOST_FACTORIAL = 170  # 171! is more than the largest float64
INVERSE_ERROR = ("chebyshev", "inverse_error")
SCALED_ERROR = ("chebyshev", "scaled_error")
BESSEL = ("chebyshev", "bessel")
MODIFIED_BESSEL = ("chebyshev", "modified_bessel")


def unary(
    aten: str,
    function: str,
    flops: float,
    templates: tuple[str, ...],
    ulp: float = 1,
    **more: Any,
) -> Row:
    return Row(
        aten,
        f"{function}(a0)",
        FLOATING,
        flops=flops,
        functions=templates,
        ulp=ulp,
        **more,
    )


TRIGAMMA = CustomKernel(
    "xpurt::trigamma",
    (
        Step(
            over="self",
            text="""
  long index[8];
  const long to = out_unravel(i, index);
  out_store(to, trigamma_of(self_load(self_at(index))));
""",
        ),
    ),
    FLOATING_ONLY,
    like="self",
    templates=("gamma",),
    flops=90,
    schema="(Tensor self) -> Tensor",
)


def polygamma(n: int, x: Tensor) -> Any:
    """The n-th derivative of digamma (Abramowitz, Stegun 1964, 6.4.10)."""
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n, got {n}")
    if n == 0:
        return torch.digamma(x)
    if n == 1:
        return torch.ops.xpurt.trigamma(
            x if x.is_floating_point() else x.to(torch.get_default_dtype())
        )
    scale = float(factorial(n)) if n <= MOST_FACTORIAL else inf
    return torch.special.zeta(n + 1, x) * (scale if n % 2 else -scale)


GAMMA_GRADIENT = CustomKernel(
    "xpurt::gamma_gradient",
    (
        Step(
            over="out",
            text="""
  long index[8];
  const long to = out_unravel(i, index);
  const C shape = self_load(self_at(index)), x = output_load(output_at(index));
  out_store(to, gamma_gradient_of(shape, x));
""",
        ),
    ),
    FLOATING_ONLY,
    templates=("gamma",),
    flops=1000,
    schema="(Tensor self, Tensor output, Tensor(a!) out) -> ()",
)


def standard_gamma_grad(self: Tensor, output: Tensor) -> Tensor:
    if self.dtype != output.dtype or self.dtype not in (torch.float32, torch.float64):
        return torch._standard_gamma_grad(self, output)
    (like,) = _C.meta_results("aten::add", "Tensor", self, output)
    out = torch.empty_like(like, device=self.device)
    operands = (each.expand(like.shape) for each in (self, output))
    torch.ops.xpurt.gamma_gradient(*operands, out)
    return out


ERROR_FUNCTIONS = (
    unary("erfinv", "erfinv_of", 90, INVERSE_ERROR, ulp=4),
    unary("special_ndtri", "ndtri_of", 90, INVERSE_ERROR, ulp=4),
    unary("special_erfcx", "erfcx_of", 150, SCALED_ERROR, ulp=8),
    unary("special_log_ndtr", "log_ndtr_of", 350, SCALED_ERROR, ulp=128),
)

GAMMA_FUNCTIONS: tuple[Row | CustomKernel | Decomposed, ...] = (
    unary("digamma", "digamma_of", 90, ("gamma",), ulp=32, scale=1),
    Row(
        "special_zeta",
        "zeta_of(a0, a1)",
        FLOATING,
        flops=1300,
        functions=("gamma",),
        in_double=True,
        ulp=4,
    ),
    Decomposed("polygamma", polygamma),
    TRIGAMMA,
    GAMMA_GRADIENT,
    Decomposed("_standard_gamma_grad", standard_gamma_grad, Kind("fd")),
    Row(
        "igamma",
        "igamma_of(a0, a1)",
        FLOATING_ONLY,
        flops=4900,
        functions=("incomplete_gamma",),
        ulp=1024,
    ),
    Row(
        "igammac",
        "igammac_of(a0, a1)",
        FLOATING_ONLY,
        flops=8100,
        functions=("incomplete_gamma",),
        ulp=2048,
    ),
)

BESSEL_FUNCTIONS = (
    unary("special_bessel_j0", "bessel_j0", 180, BESSEL, ulp=32, scale=1),
    unary("special_bessel_j1", "bessel_j1", 220, BESSEL, ulp=32, scale=1),
    unary("special_bessel_y0", "bessel_y0", 350, BESSEL, ulp=32, scale=1),
    unary("special_bessel_y1", "bessel_y1", 250, BESSEL, ulp=32, scale=1),
    unary("special_spherical_bessel_j0", "spherical_j0", 75, BESSEL, ulp=4),
    unary("i0", "modified_i0", 80, MODIFIED_BESSEL, ulp=8),
    unary("special_i0e", "scaled_i0", 70, MODIFIED_BESSEL, ulp=8),
    unary("special_i1", "modified_i1", 80, MODIFIED_BESSEL, ulp=8),
    unary("special_i1e", "scaled_i1", 70, MODIFIED_BESSEL, ulp=8),
    unary("special_modified_bessel_i0", "modified_i0", 80, MODIFIED_BESSEL, ulp=8),
    unary("special_modified_bessel_i1", "modified_i1", 80, MODIFIED_BESSEL, ulp=8),
    unary("special_modified_bessel_k0", "modified_k0", 150, MODIFIED_BESSEL, ulp=16),
    unary("special_modified_bessel_k1", "modified_k1", 150, MODIFIED_BESSEL, ulp=16),
    unary(
        "special_scaled_modified_bessel_k0", "scaled_k0", 150, MODIFIED_BESSEL, ulp=16
    ),
    unary(
        "special_scaled_modified_bessel_k1", "scaled_k1", 150, MODIFIED_BESSEL, ulp=16
    ),
    unary(
        "special_airy_ai",
        "airy_ai",
        1000,
        ("chebyshev", "airy"),
        ulp=64,
        scale=0.125,
        in_double=True,
    ),
)


def polynomial(name: str, expression: str, flops: float = 60) -> Row:
    """A row of the polynomial of degree a1 at a0; the degree is truncated."""
    return Row(
        f"special_{name}",
        expression,
        FLOATING,
        flops=flops,
        functions=("polynomials",),
        ulp=256,
        scale=1,
    )


POLYNOMIALS = (
    *(
        polynomial(
            f"chebyshev_polynomial_{kind}", f"chebyshev_{kind}(a0, a1)", flops=500
        )
        for kind in "tuvw"
    ),
    *(
        polynomial(
            f"shifted_chebyshev_polynomial_{kind}",
            f"chebyshev_{kind}(2 * a0 - 1, a1)",
            flops=500,
        )
        for kind in "tuvw"
    ),
    polynomial("hermite_polynomial_h", "hermite_h(a0, a1)"),
    polynomial("hermite_polynomial_he", "hermite_he(a0, a1)"),
    polynomial("laguerre_polynomial_l", "laguerre_l(a0, a1)"),
    polynomial("legendre_polynomial_p", "legendre_p(a0, a1)"),
)

ROWS: tuple[Row | CustomKernel | Decomposed, ...] = (
    *ERROR_FUNCTIONS,
    *GAMMA_FUNCTIONS,
    *BESSEL_FUNCTIONS,
    *POLYNOMIALS,
)
