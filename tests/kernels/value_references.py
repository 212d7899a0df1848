"""What is right: formulas in float64 for narrower types, and mpmath's for float64.

Without a formula here it is PyTorch's own CPU kernel in float64. Those that are here
are of functions of which PyTorch's kernel loses digits, or leaves the numbers too soon.
"""

import math
from collections.abc import Callable

import mpmath
import numpy as np
import torch

Reference = Callable[..., torch.Tensor]


def gelu(x: torch.Tensor) -> torch.Tensor:
    return x / 2 * torch.erfc(-x * math.sqrt(0.5))


def gelu_by_tanh(x: torch.Tensor) -> torch.Tensor:
    return x / (1 + torch.exp(-2 * _inner(x)))


def _inner(x: torch.Tensor) -> torch.Tensor:
    return math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)


def gelu_backward(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    density = torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return g * (torch.erfc(-x * math.sqrt(0.5)) / 2 + x * density)


def gelu_by_tanh_backward(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    s, rest = torch.sigmoid(2 * _inner(x)), torch.sigmoid(-2 * _inner(x))
    slope = 2 * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x * x)
    return g * (s + x * s * rest * slope)


def mish(x: torch.Tensor) -> torch.Tensor:
    n = torch.exp(x) * (torch.exp(x) + 2)
    return torch.where(x > 40, x, x * (n / (n + 2)))


def mish_backward(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    e = torch.exp(x)
    n = e * (e + 2)
    slope = (n * (n + 2) + 4 * (x * e) * (1 + e)) / (n + 2) ** 2
    return g * torch.where(x > 40, torch.ones_like(x), slope)


def sinc(x: torch.Tensor) -> torch.Tensor:
    whole = torch.round(x)
    sine = torch.sin(math.pi * (x - whole)) * (1 - 2 * torch.remainder(whole, 2))
    found = torch.where(x == whole, 0.0, sine / (math.pi * x))
    return torch.where(x == 0, 1.0, torch.where(x.isfinite(), found, torch.sinc(x)))


def bessel(name: str, turned: int, order: int) -> Reference:
    """PyTorch's, and Hankel's expansion (DLMF 10.17) where its phase loses digits."""
    native = getattr(torch.special, name)

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.abs().clamp(min=1)
        mu = 4.0 * order * order
        p = 1 - (mu - 1) * (mu - 9) / (2 * (8 * y) ** 2)
        q = (mu - 1) / (8 * y)
        s, c = torch.sin(y), torch.cos(y)
        # The cosine and the sine of y less an odd multiple of pi / 4.
        near, far = ((c + s), (s - c)) if order == 0 else ((s - c), -(s + c))
        value = p * far + q * near if turned else p * near - q * far
        value = value / (math.sqrt(math.pi) * torch.sqrt(y))
        sign = torch.where(x < 0, -1.0, 1.0) if order == 1 else 1.0
        large = (x if turned else x.abs()) > 1e4
        return torch.where(large & x.isfinite(), sign * value, native(x))

    return function


def by_numpy(function: Callable[..., np.ndarray]) -> Reference:
    def wrapped(*operands: torch.Tensor) -> torch.Tensor:
        with np.errstate(all="ignore"):
            return torch.from_numpy(function(*(x.numpy() for x in operands)))

    return wrapped


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((b < 0) != (rest < 0)), rest + b, rest)


def hardsigmoid_backward(g: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """PyTorch's multiplies by a sixth that is rounded to float."""
    return torch.where((x > -3) & (x < 3), g / 6, 0.0)


REFERENCES: dict[str, Reference] = {
    "gelu:none": gelu,
    "gelu:tanh": gelu_by_tanh,
    "gelu_backward:none": gelu_backward,
    "gelu_backward:tanh": gelu_by_tanh_backward,
    "mish": mish,
    "mish_backward": mish_backward,
    "sinc": sinc,
    "special_bessel_j0": bessel("bessel_j0", 0, 0),
    "special_bessel_j1": bessel("bessel_j1", 0, 1),
    "special_bessel_y0": bessel("bessel_y0", 1, 0),
    "special_bessel_y1": bessel("bessel_y1", 1, 1),
    # PyTorch's gives NaN for a divisor below the normal numbers.
    "fmod": by_numpy(np.fmod),
    "remainder": by_numpy(remainder),
    "hardsigmoid_backward": hardsigmoid_backward,
}

m = mpmath
Exact = Callable[[mpmath.mpf], mpmath.mpf]
EXACT: dict[str, Exact] = {
    "exp": m.exp,
    "exp2": lambda x: m.power(2, x),
    "expm1": m.expm1,
    "log": m.log,
    "log2": lambda x: m.log(x, 2),
    "log10": m.log10,
    "log1p": m.log1p,
    "sqrt": m.sqrt,
    "rsqrt": lambda x: 1 / m.sqrt(x),
    "sin": m.sin,
    "cos": m.cos,
    "tan": m.tan,
    "asin": m.asin,
    "acos": m.acos,
    "atan": m.atan,
    "sinh": m.sinh,
    "cosh": m.cosh,
    "tanh": m.tanh,
    "asinh": m.asinh,
    "acosh": m.acosh,
    "atanh": m.atanh,
    "sigmoid": lambda x: 1 / (1 + m.exp(-x)),
    "erf": m.erf,
    "erfc": m.erfc,
    "lgamma": lambda x: m.re(m.loggamma(x)),
    "silu": lambda x: x / (1 + m.exp(-x)),
    "mish": lambda x: x * m.tanh(m.log1p(m.exp(x))),
    "gelu:none": lambda x: x / 2 * m.erfc(-x / m.sqrt(2)),
    "gelu:tanh": lambda x: x / (1 + m.exp(-2 * m.sqrt(2 / m.pi) * (x + _C * x**3))),
    "sinc": lambda x: m.sincpi(x),
    "special_entr": lambda x: -x * m.log(x),
    "erfinv": m.erfinv,
    "special_erfcx": lambda x: m.exp(x * x) * m.erfc(x),
    "special_log_ndtr": lambda x: (
        m.log1p(-m.erfc(x / m.sqrt(2)) / 2)
        if x > 0
        else m.log(m.erfc(-x / m.sqrt(2)) / 2)
    ),
    "digamma": m.digamma,
    "special_bessel_j0": lambda x: m.besselj(0, x),
    "special_bessel_j1": lambda x: m.besselj(1, x),
    "special_bessel_y0": lambda x: m.bessely(0, x),
    "special_bessel_y1": lambda x: m.bessely(1, x),
    "special_spherical_bessel_j0": lambda x: m.sinc(x),
    "i0": lambda x: m.besseli(0, x),
    "special_i0e": lambda x: m.exp(-abs(x)) * m.besseli(0, x),
    "special_i1": lambda x: m.besseli(1, x),
    "special_i1e": lambda x: m.exp(-abs(x)) * m.besseli(1, x),
    "special_modified_bessel_i0": lambda x: m.besseli(0, x),
    "special_modified_bessel_i1": lambda x: m.besseli(1, x),
    "special_modified_bessel_k0": lambda x: m.besselk(0, x),
    "special_modified_bessel_k1": lambda x: m.besselk(1, x),
    "special_scaled_modified_bessel_k0": lambda x: m.exp(x) * m.besselk(0, x),
    "special_scaled_modified_bessel_k1": lambda x: m.exp(x) * m.besselk(1, x),
    "special_airy_ai": m.airyai,
}
_C = m.mpf("0.044715")

# PyTorch's kernels have some 6 or 7 digits of them in any type.
EXACT_IN_FLOAT = {"special_airy_ai", "special_bessel_y0", "special_bessel_y1"}
# Of these one value of 16, as mpmath takes 20 ms for each, and those to 20,000, where
# PyTorch's kernels of Y have 7 digits.
SLOW = {
    "special_bessel_y0",
    "special_bessel_y1",
    "special_modified_bessel_k0",
    "special_modified_bessel_k1",
    "special_scaled_modified_bessel_k0",
    "special_scaled_modified_bessel_k1",
}


# Beyond, mpmath takes long, or gives up. No function here has an edge there but those
# that PyTorch's kernel knows.
LARGEST = 1e5


def by_mpmath(name: str, given: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The function of each number in float64. What mpmath can't compute, or has no real
    value, is taken of `other`."""
    found = []
    every = 16 if name in SLOW else 1
    for k, (x, y) in enumerate(
        zip(given.double().tolist(), other.tolist(), strict=True)
    ):
        found.append(y)
        if not 0 < abs(x) < LARGEST or (
            k % every and abs(x) > 1e-300 and not 1e-3 <= x <= 2e4
        ):
            continue
        try:
            with mpmath.workdps(40):
                value = EXACT[name](mpmath.mpf(x))
                if isinstance(value, mpmath.mpf) and not mpmath.isnan(value):
                    found[-1] = float(value)
        except (
            ValueError,
            ZeroDivisionError,
            OverflowError,
            mpmath.libmp.NoConvergence,
        ):
            continue
    return torch.tensor(found, dtype=torch.double)
