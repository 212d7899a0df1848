"""Factorizations of matrices, and what is computed from them, on the queue."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import xpurt
from kernels.kernel_forced import ON_THE_QUEUE, all_tiers
from xpurt import _C
from xpurt.kernels.rows.linear_algebra.panels import WIDTH

ATEN = torch.ops.aten
DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)
# Beside small ones: whole panels, and one column more.
SIZES = ((3, 3), (2, 2, 5, 5), (2, WIDTH, WIDTH), (1, 2 * WIDTH + 1, 2 * WIDTH + 1))
NEAR = {torch.float32: 2e-4, torch.complex64: 2e-4}


def random(*shape: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(*shape, dtype=dtype)


def regular(x: Tensor) -> Tensor:
    """A matrix that is far from a singular one, with pivots beside the diagonal."""
    size = x.shape[-1]
    return x + size**0.5 * torch.eye(size, dtype=x.dtype).flip(0)


def positive(x: Tensor) -> Tensor:
    return x @ x.mH / x.shape[-1] + torch.eye(x.shape[-1], dtype=x.dtype)


def column(x: Tensor) -> Tensor:
    return random(*x.shape[:-1], 3, dtype=x.dtype)


CASES: dict[str, Callable[[Tensor], tuple[Any, ...]]] = {
    "cholesky_ex": lambda x: (ATEN.linalg_cholesky_ex, positive(x)),
    "cholesky_ex, upper": lambda x: (
        lambda s: torch.linalg.cholesky_ex(s, upper=True),
        positive(x).mT,
    ),
    "cholesky_inverse": lambda x: (
        torch.cholesky_inverse,
        torch.linalg.cholesky(positive(x)),
    ),
    "cholesky_solve": lambda x: (
        lambda b, u: torch.cholesky_solve(b, u, upper=True),
        column(x),
        torch.linalg.cholesky(positive(x), upper=True),
    ),
    "solve_triangular": lambda x: (
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=True),
        positive(x),
        column(x),
    ),
    "solve_triangular, right": lambda x: (
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=False, left=False),
        positive(x),
        column(x).mT,
    ),
    "solve_triangular of a conjugate": lambda x: (
        lambda a, b: torch.linalg.solve_triangular(a.mH, b, upper=True),
        positive(x),
        column(x),
    ),
    "triangular_solve": lambda x: (
        lambda b, a: ATEN.triangular_solve(b, a, transpose=True),
        column(x),
        positive(x),
    ),
    "lu_factor_ex": lambda x: (ATEN.linalg_lu_factor_ex, regular(x)),
    "lu_factor_ex, tall": lambda x: (ATEN.linalg_lu_factor_ex, regular(x)[..., :-2]),
    "lu, wide": lambda x: (torch.linalg.lu, regular(x)[..., :-2, :]),
    "lu_unpack": lambda x: (torch.lu_unpack, *torch.linalg.lu_factor(regular(x))),
    "lu_solve": lambda x: (
        torch.linalg.lu_solve,
        *torch.linalg.lu_factor(regular(x)),
        column(x),
    ),
    "lu_solve, adjoint": lambda x: (
        lambda lu, p, b: torch.linalg.lu_solve(lu, p, b, left=False, adjoint=True),
        *torch.linalg.lu_factor(regular(x)),
        column(x).mT,
    ),
    "solve": lambda x: (ATEN._linalg_solve_ex, regular(x), column(x)),
    "solve of a vector": lambda x: (
        torch.linalg.solve,
        regular(x),
        random(x.shape[-1], dtype=x.dtype),
    ),
    "inv": lambda x: (ATEN.linalg_inv_ex, regular(x)),
    "det": lambda x: (ATEN._linalg_det, regular(x) / 4),
    "slogdet": lambda x: (ATEN._linalg_slogdet, regular(x)),
    "matrix_exp": lambda x: (torch.linalg.matrix_exp, x / x.shape[-1] ** 0.5),
    "matrix_exp of a large norm": lambda x: (torch.linalg.matrix_exp, x.mH - x),
}


def assert_like(actual: Any, expected: Any) -> None:
    """Values in units of the largest one; sizes, strides and types of each result."""
    if isinstance(expected, Tensor):
        actual, expected = [actual], [expected]
    for found, wanted in zip(actual, expected, strict=True):
        near = NEAR.get(wanted.dtype, 1e-11)
        scale = wanted.abs().max().item() if wanted.numel() else 1
        assert_close(found.cpu(), wanted, rtol=0, atol=near * scale, check_stride=True)


@pytest.mark.each_value
@pytest.mark.beyond_cpu(dtype=[torch.float32, torch.complex64])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_results(case: str, dtype: torch.dtype, xpu: torch.device) -> None:
    """They are LAPACK's, with the same pivots, in kernels only."""
    for sizes in SIZES:
        call, *operands = CASES[case](random(*sizes, dtype=dtype))
        expected = call(*operands)
        given = [each.to(xpu) for each in operands]
        torch.xpu.synchronize()
        _C.reset_op_report()
        with xpurt.kernel_policy("sycl"):
            found = call(*given)
        torch.xpu.synchronize()
        assert all_tiers() <= ON_THE_QUEUE, (sizes, _C.op_report())
        assert_like(found, expected)


@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.parametrize("size", [0, 1])
def test_small_sizes(size: int, xpu: torch.device) -> None:
    for case, make in CASES.items():
        if "tall" in case or "wide" in case:
            continue
        call, *operands = make(random(2, size, size, dtype=torch.float32))
        with xpurt.kernel_policy("sycl"):
            found = call(*(each.to(xpu) for each in operands))
        assert_like(found, call(*operands))


@pytest.mark.mappings("CPU", "GPU")
def test_gradients(xpu: torch.device) -> None:
    def changes(x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        s, b = x @ x.mT + 9 * torch.eye(9, device=x.device), x[:, :2]
        sums = (
            torch.linalg.cholesky(s).sum(),
            torch.linalg.solve(s, b).sum(),
            torch.linalg.solve_triangular(s, b, upper=True).sum(),
            torch.linalg.inv(s).sum(),
            torch.linalg.slogdet(s)[1],
            torch.linalg.det(s / 20),
            torch.linalg.matrix_exp(x / 9).sum(),
            torch.linalg.lu(s)[2].sum(),
        )
        return torch.stack(
            [torch.autograd.grad(y, x, retain_graph=True)[0] for y in sums]
        )

    x = random(9, 9, dtype=torch.float64)
    with xpurt.kernel_policy("sycl"):
        found = changes(x.to(xpu))
    assert_close(found.cpu(), changes(x), rtol=1e-9, atol=1e-10)


@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.linalg.cholesky(-torch.eye(3, device=d)),
        lambda d: torch.linalg.cholesky(
            torch.eye(3, device=d).expand(2, 3, 3)
            * torch.tensor([1.0, -1.0], device=d).view(2, 1, 1)
        ),
        lambda d: torch.linalg.cholesky_ex(-torch.eye(3, device=d), check_errors=True),
        lambda d: torch.linalg.inv(torch.zeros(3, 3, device=d)),
        lambda d: torch.linalg.solve(
            torch.zeros(3, 3, device=d), torch.ones(3, device=d)
        ),
        lambda d: torch.linalg.lu_factor(torch.ones(2, 3, 3, device=d)),
        lambda d: torch.linalg.lu_factor(torch.eye(3, device=d), pivot=False),
        lambda d: torch.linalg.inv(torch.ones(3, 4, device=d)),
        lambda d: torch.linalg.inv(torch.eye(3, device=d).half()),
        lambda d: torch.linalg.solve_triangular(
            torch.eye(3, device=d), torch.ones(4, 1, device=d), upper=True
        ),
    ],
)
def test_errors(call: Callable[[torch.device], object], xpu: torch.device) -> None:
    """They are PyTorch's for the CPU."""
    with pytest.raises(Exception) as expected:
        call(torch.device("cpu"))
    with xpurt.kernel_policy("sycl"), pytest.raises(expected.type) as found:
        call(xpu)
    assert str(found.value) == str(expected.value)


@pytest.mark.mappings("CPU", "GPU")
def test_one_matrix_that_fails_leaves_the_others_alone(xpu: torch.device) -> None:
    s = positive(random(3, 70, 70, dtype=torch.float64))
    s[1, 40, 40] = -1
    factors, info = torch.linalg.cholesky_ex(s)
    with xpurt.kernel_policy("sycl"):
        found, numbers = torch.linalg.cholesky_ex(s.to(xpu))
    assert numbers.tolist() == info.tolist() == [0, 41, 0]
    assert_close(found[::2].cpu(), factors[::2])


@pytest.mark.mappings("CPU")
def test_lapack_stays_on_a_cpu(xpu: torch.device) -> None:
    """However often it is called, `auto` never tries the row."""
    x = regular(random(64, 64, dtype=torch.float32)).to(xpu)
    _C.reset_op_report()
    for _ in range(50):
        torch.linalg.inv(x)
    rows = {row[0]: row[1] for row in _C.op_report()}
    assert rows["aten::linalg_inv_ex"] == "native"
