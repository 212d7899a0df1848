"""Special functions against values with 30 digits, and at the edges of their domains.

PyTorch's own kernels of some have fewer digits than their type.
"""

from collections.abc import Callable

import mpmath
import pytest
import torch

from kernels.kernel_forced import on_queue

WHOLE_LINE = (-7.5, -1.3, -0.02, 0.4, 1.9, 3.1, 7.9, 8.1, 30.5)
POSITIVE = (0.003, 0.4, 1.9, 2.1, 4.5, 7.9, 8.1, 30.5)
UNIT = (1e-9, 0.003, 0.2, 0.499, 0.51, 0.97, 0.99999)

special = torch.special
Exact = Callable[[mpmath.mpf], mpmath.mpf]
FUNCTIONS: dict[
    str, tuple[Callable[[torch.Tensor], torch.Tensor], tuple[float, ...], Exact]
] = {
    "erfinv": (torch.erfinv, (-0.9999, -0.3, *UNIT), mpmath.erfinv),
    "special_ndtri": (
        special.ndtri,
        UNIT,
        lambda p: mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1),
    ),
    "special_erfcx": (
        special.erfcx,
        WHOLE_LINE,
        lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    ),
    "special_log_ndtr": (
        special.log_ndtr,
        (-20.5, -1.1, -0.9, 0.3, 2.5),
        lambda x: mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2),
    ),
    "digamma": (torch.digamma, (-7.4, -0.2, *POSITIVE), mpmath.digamma),
    "special_i0e": (
        special.i0e,
        WHOLE_LINE,
        lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x),
    ),
    "special_i1e": (
        special.i1e,
        WHOLE_LINE,
        lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(1, x),
    ),
    "special_scaled_modified_bessel_k0": (
        special.scaled_modified_bessel_k0,
        POSITIVE,
        lambda x: mpmath.exp(x) * mpmath.besselk(0, x),
    ),
    "special_scaled_modified_bessel_k1": (
        special.scaled_modified_bessel_k1,
        POSITIVE,
        lambda x: mpmath.exp(x) * mpmath.besselk(1, x),
    ),
    "special_bessel_j0": (
        special.bessel_j0,
        WHOLE_LINE,
        lambda x: mpmath.besselj(0, x),
    ),
    "special_bessel_j1": (
        special.bessel_j1,
        WHOLE_LINE,
        lambda x: mpmath.besselj(1, x),
    ),
    "special_bessel_y0": (special.bessel_y0, POSITIVE, lambda x: mpmath.bessely(0, x)),
    "special_bessel_y1": (special.bessel_y1, POSITIVE, lambda x: mpmath.bessely(1, x)),
    "special_airy_ai": (special.airy_ai, (-5.5, *WHOLE_LINE[:-1]), mpmath.airyai),
    "lgamma": (torch.lgamma, WHOLE_LINE, lambda x: mpmath.log(abs(mpmath.gamma(x)))),
    "polygamma": (
        lambda x: torch.polygamma(3, x),
        (-2.4, *POSITIVE),
        lambda x: mpmath.polygamma(3, x),
    ),
}


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str, xpu: torch.device) -> None:
    """To 64 units in the last place: the arguments are far from the zeros."""
    function, arguments, exact = FUNCTIONS[name]
    for dtype in (torch.float32, torch.float64):
        given = torch.tensor(arguments, dtype=dtype)
        actual = on_queue(f"aten::{name}", lambda x=given: function(x.to(xpu)))
        for x, y in zip(given.tolist(), actual.tolist(), strict=True):
            with mpmath.workdps(30):
                expected = exact(mpmath.mpf(x))
                error = abs(mpmath.mpf(y) - expected) / abs(expected)
            assert error <= 64 * torch.finfo(dtype).eps, (
                f"{name}({x}) in {dtype} is {y}"
            )


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma(name: str, xpu: torch.device) -> None:
    """With small, large and nearly equal arguments."""
    a = [0.01, 0.5, 0.5, 3.0, 3.0, 30.0, 80.0, 80.0, 900.0, 3e4, 3e4, 1e5]
    x = [0.3, 0.2, 7.0, 0.01, 9.0, 30.0, 70.0, 99.0, 910.0, 2.99e4, 3.02e4, 1e5]
    function = getattr(torch, name)
    for dtype in (torch.float32, torch.float64):
        left, right = torch.tensor(a, dtype=dtype), torch.tensor(x, dtype=dtype)
        actual = on_queue(
            f"aten::{name}", lambda p=left, q=right: function(p.to(xpu), q.to(xpu))
        )
        for p, q, y in zip(left.tolist(), right.tolist(), actual.tolist(), strict=True):
            bounds = (0, q) if name == "igamma" else (q, mpmath.inf)
            with mpmath.workdps(30):
                expected = mpmath.gammainc(p, *bounds, regularized=True)
                error = abs(mpmath.mpf(y) - expected) / abs(expected)
            assert error <= 500 * torch.finfo(dtype).eps, f"{name}({p}, {q}) is {y}"


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges_are_as_on_the_cpu(name: str, xpu: torch.device) -> None:
    function, *_ = FUNCTIONS[name]
    edges = [float("nan"), 0.0, -0.0, 1.0, -1.0, 2.0, 8.0]
    if name not in ("special_airy_ai", "polygamma"):
        edges += [float("inf"), float("-inf")]
    given = torch.tensor(edges)
    actual = on_queue(f"aten::{name}", lambda: function(given.to(xpu)))
    torch.testing.assert_close(
        actual.cpu(), function(given), rtol=1e-5, atol=1e-6, equal_nan=True
    )


def test_polygamma_of_a_negative_order(xpu: torch.device) -> None:
    with pytest.raises(RuntimeError, match="negative n"):
        torch.polygamma(-1, torch.ones(3, device=xpu))
