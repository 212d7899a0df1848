"""Sums of many terms: as exact as in PyTorch's CPU kernels, by a run in more digits."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import xpurt

COUNT = 5000  # ones; in bfloat16 256 + 1 is 256, in float16 2048 + 1 is 2048
Call = Callable[..., torch.Tensor]


def scattered(
    method: str, x: torch.Tensor, index: torch.Tensor, *more: object, **given: object
) -> torch.Tensor:
    source = torch.ones_like(index, dtype=x.dtype)
    found: torch.Tensor = getattr(x, method)(0, index, source, *more, **given)
    return found


def gradient_of(
    op: Call, x: torch.Tensor, index: torch.Tensor, *dim: int
) -> torch.Tensor:
    x = x.clone().requires_grad_()
    chosen = op(x, *dim, index) if op is torch.gather else op(x, index, *dim)
    return torch.autograd.grad(chosen.sum(), x)[0]


SUMS: dict[str, Call] = {
    "scatter_add": partial(scattered, "scatter_add"),
    "scatter": lambda x, index: scattered("scatter", x, index, reduce="add"),
    "scatter a number": lambda x, index: x.scatter(0, index, 1.0, reduce="add"),
    "index_add": partial(scattered, "index_add"),
    "scatter_reduce": lambda x, i: scattered("scatter_reduce", x, i, "sum"),
    "scatter_reduce alone": lambda x, i: scattered(
        "scatter_reduce", x, i, "sum", include_self=False
    ),
    "gather": lambda x, index: gradient_of(torch.gather, x, index, 0),
    "take_along_dim": lambda x, i: gradient_of(torch.take_along_dim, x, i, 0),
}
MEANS: dict[str, Call] = {
    "scatter_reduce": lambda x, i: scattered(
        "scatter_reduce", x, i, "mean", include_self=False
    ),
    "index_reduce": lambda x, i: scattered(
        "index_reduce", x, i, "mean", include_self=False
    ),
}
HALVES = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)


@pytest.mark.one_in(2)
@HALVES
@pytest.mark.parametrize("name", SUMS)
def test_halves_add_up(name: str, dtype: torch.dtype, xpu: torch.device) -> None:
    x = torch.zeros(3, dtype=dtype, device=xpu)
    index = torch.ones(COUNT, dtype=torch.int64, device=xpu)
    with xpurt.kernel_policy("sycl"):
        found = SUMS[name](x, index).cpu()
    exact = torch.tensor([0, COUNT, 0]).to(dtype)
    assert found.dtype == dtype
    assert torch.equal(found, exact)


@HALVES
@pytest.mark.parametrize("name", MEANS)
def test_means_of_halves(name: str, dtype: torch.dtype, xpu: torch.device) -> None:
    x = torch.zeros(3, dtype=dtype, device=xpu)
    index = torch.ones(COUNT, dtype=torch.int64, device=xpu)
    with xpurt.kernel_policy("sycl"):
        found = MEANS[name](x, index).cpu()
    assert found.tolist() == [0, 1, 0]


@HALVES
def test_halves_along_a_middle_dimension(dtype: torch.dtype, xpu: torch.device) -> None:
    """Several lines, targets that are not written, and an `out=` with gaps."""
    x = torch.arange(24.0).view(2, 4, 3).to(dtype)
    index = torch.tensor([2, 0]).repeat(1500).view(1, 3000, 1).expand(2, 3000, 3)
    ones = torch.ones(2, 3000, 3, dtype=dtype)
    out = torch.zeros(2, 4, 6, dtype=dtype, device=xpu)[..., ::2]
    with xpurt.kernel_policy("sycl"):
        torch.scatter_add(x.to(xpu), 1, index.to(xpu), ones.to(xpu), out=out)
        lines = x.to(xpu).index_add(1, index[0, :, 0].to(xpu), ones.to(xpu))
    exact = x.double().scatter_add(1, index, ones.double()).to(dtype)
    assert torch.equal(out.cpu(), exact)
    assert torch.equal(lines.cpu(), exact)


MANY = 200_000
ALONG: dict[str, Call] = {
    "cumsum": lambda x: x.cumsum(0),
    "cumsum of lines": lambda x: x.view(2, -1).cumsum(1),
    "cumprod": lambda x: (1 + (x - 0.5) / 2**12).cumprod(0),
    "complex cumsum": lambda x: torch.complex(x, x).cumsum(0).imag,
    "dot": lambda x: torch.dot(x, x),
    "vdot": lambda x: torch.vdot(x, x),
    "mv": lambda x: x.view(2, -1) @ x[MANY // 2 :],
    "mv of columns": lambda x: x.view(-1, 2).t() @ x[: MANY // 2],
    "mv with a rest": lambda x: x[:-2].view(2, -1) @ x[1 : MANY // 2],
}


@pytest.mark.parametrize("name", ALONG)
def test_floats_add_up(name: str, xpu: torch.device) -> None:
    """Sequential sums in float would be 1e-5 off. oneDNN's product of a matrix and a vector
    has 16 sums with AVX-512, and is 1.05e-6 off."""
    x = torch.rand(MANY, generator=torch.Generator().manual_seed(0))
    x = (x * 2**10).round() / 2**10  # 1 + (x - 1/2) / 2**12 is exact
    with xpurt.kernel_policy("sycl"):
        found = ALONG[name](x.to(xpu)).cpu().double()
    exact = ALONG[name](x.double())
    assert ((found - exact).abs().max() / exact.abs().max()).item() < 2e-6


def test_infinities_and_nan_stay_in_a_cumsum(xpu: torch.device) -> None:
    x = torch.tensor([[1, torch.inf, 2, 3], [3e38, 3e38, 1, 1], [1, torch.nan, 1, 1]])
    with xpurt.kernel_policy("sycl"):
        found = x.to(xpu).cumsum(1).cpu()
    torch.testing.assert_close(found, x.cumsum(1), rtol=0, atol=0, equal_nan=True)


def last(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last)


EPS = 1e-30
# Each with the dimensions that it normalizes over.
NORMS: dict[str, tuple[Call, tuple[int, ...]]] = {
    "layer_norm": (lambda x: F.layer_norm(x, x.shape[2:], eps=EPS), (2, 3)),
    "group_norm": (lambda x: F.group_norm(x, 1, eps=EPS), (1, 2, 3)),
    "group_norm last": (lambda x: F.group_norm(last(x), 1, eps=EPS), (1, 2, 3)),
    "batch_norm": (
        lambda x: F.batch_norm(x, None, None, training=True, eps=EPS),
        (0, 2, 3),
    ),
    "batch_norm last": (
        lambda x: F.batch_norm(last(x), None, None, training=True, eps=EPS),
        (0, 2, 3),
    ),
    "instance_norm": (lambda x: F.instance_norm(x, eps=EPS), (2, 3)),
}


@pytest.mark.parametrize("policy", ["auto", "sycl"])
@pytest.mark.parametrize("name", NORMS)
def test_norms_of_small_noise(name: str, policy: str, xpu: torch.device) -> None:
    """Around 1000 the spacing of doubles is 1e-13, and the noise 1e-10. A variance from
    squares of the values has no digits then."""
    op, dims = NORMS[name]
    noise = torch.randn(
        2, 6, 40, 50, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    x = 1000 + 1e-10 * noise
    with xpurt.kernel_policy(policy):
        found = op(x.to(xpu)).cpu().numpy()
    wide = x.numpy().astype(np.longdouble)
    away = wide - wide.mean(axis=dims, keepdims=True)
    exact = away / np.sqrt((away**2).mean(axis=dims, keepdims=True))
    assert float(np.abs(found - exact).max() / np.abs(exact).max()) < 2e-2


def test_variance_of_small_noise(xpu: torch.device) -> None:
    x = 1000 + 1e-10 * torch.randn(
        6, 2000, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    with xpurt.kernel_policy("sycl"):
        found = x.to(xpu).var(1).cpu().numpy()
    exact = x.numpy().astype(np.longdouble).var(axis=1, ddof=1)
    assert float((np.abs(found - exact) / exact).max()) < 1e-4


LONG = 1_000_000


def near_one(x: torch.Tensor) -> torch.Tensor:
    """The same numbers in float and in double."""
    return 1 + ((x * 2**12).round() / 2**12 - 0.5) / 2**8


# Each with the most that may be lost, as a share of the largest result.
LOSSES: dict[str, tuple[Call, float]] = {
    "prod": (lambda x: near_one(x).prod(), 1e-6),
    "prod along 0": (lambda x: near_one(x).view(-1, 4).prod(0), 1e-6),
    "sum along 0": (lambda x: x.view(-1, 10).sum(0), 3.5e-7),
    "sum along 1": (lambda x: x.view(10, -1, 10).sum(1), 5e-7),
    "nll_loss": (
        lambda x: F.nll_loss(-x.view(-1, 1), torch.zeros_like(x).long()),
        3e-7,
    ),
    "layer_norm": (lambda x: F.layer_norm(x, x.shape), 6e-7),
    "group_norm": (lambda x: F.group_norm(x.view(1, 4, -1), 2), 6e-7),
}


@pytest.mark.parametrize("name", LOSSES)
def test_long_sums_lose_little(name: str, xpu: torch.device) -> None:
    op, most = LOSSES[name]
    x = torch.rand(LONG, generator=torch.Generator().manual_seed(0))
    with xpurt.kernel_policy("sycl"):
        found = op(x.to(xpu)).cpu().double()
    exact = op(x.double())
    assert ((found - exact).abs().max() / exact.abs().max()).item() < most


# Wherever the mean is rounded, the differences from it add up to that.
@pytest.mark.parametrize("value", [0.1, 33.3])
def test_equal_numbers_have_no_variance(value: float, xpu: torch.device) -> None:
    x = torch.full((262_147,), value, device=xpu)
    with xpurt.kernel_policy("sycl"):
        for found in (x.std(), x.view(-1, 1).expand(-1, 3).std(0).max()):
            assert found.item() <= 1e-6 * value
        half = x.half()
        assert half.std().item() <= 1e-6 * value
        alternate = x.view(-1).add(torch.arange(len(x), device=xpu) % 2 * 1e-3)
        exact = alternate.cpu().double().std().item()
        assert alternate.std().item() == pytest.approx(exact, rel=1e-5)
        complex_ = torch.complex(x, alternate)
        exact = complex_.cpu().to(torch.complex128).var().item()
        assert complex_.var().item() == pytest.approx(exact, rel=1e-5)
