"""The distributions of random ops: distribution functions, moments and bounds."""

import math
from collections.abc import Callable

import pytest
import torch

import xpurt
from kernels.kernel_forced import forced
from kernels.random_draws import FLOATS, NARROW

SIZE = 200_000
Distribution = Callable[[torch.Tensor], torch.Tensor]

normal: Distribution = lambda x: 0.5 * (1 + torch.erf(x / math.sqrt(2)))  # noqa: E731

FILLS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], Distribution]] = {
    "uniform": (lambda t: t.uniform_(-2, 3), lambda x: (x + 2) / 5),
    "normal": (lambda t: t.normal_(1, 2), lambda x: normal((x - 1) / 2)),
    "log_normal": (
        lambda t: t.log_normal_(0.5, 0.75),
        lambda x: normal((x.clamp(min=1e-30).log() - 0.5) / 0.75),
    ),
    "exponential": (lambda t: t.exponential_(1.5), lambda x: 1 - torch.exp(-1.5 * x)),
    "cauchy": (
        lambda t: t.cauchy_(0.5, 2),
        lambda x: 0.5 + torch.atan((x - 0.5) / 2) / math.pi,
    ),
}


def distance(sample: torch.Tensor, cdf: Distribution) -> float:
    """Kolmogorov's and Smirnov's statistic times the root of the sample's size: above
    2.2 once in 8000 samples, if the distribution is right."""
    ordered = sample.cpu().double().flatten().sort().values
    expected = cdf(ordered)
    steps = torch.arange(len(ordered) + 1, dtype=torch.float64) / len(ordered)
    above = (steps[1:] - expected).max()
    below = (expected - steps[:-1]).max()
    return max(above.item(), below.item()) * math.sqrt(len(ordered))


def chi_squared(counts: torch.Tensor, chances: torch.Tensor) -> float:
    """About how many standard deviations the statistic is above its mean."""
    expected = chances.double() * counts.sum()
    statistic = ((counts - expected) ** 2 / expected).sum().item()
    freedom = len(counts) - 1
    return (statistic - freedom) / math.sqrt(2 * freedom)


@pytest.fixture(autouse=True)
def seeded(xpu: torch.device) -> None:
    torch.xpu.manual_seed(20)


@pytest.mark.beyond_cpu(dtype=[torch.float32])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FILLS)
def test_distribution(name: str, dtype: torch.dtype, xpu: torch.device) -> None:
    fill, cdf = FILLS[name]
    # Narrow types round: a smaller sample does not see that.
    size = 1000 if dtype in NARROW else SIZE
    sample = fill(torch.empty(size, dtype=dtype, device=xpu))
    assert sample.isfinite().all() or (name, dtype) == ("cauchy", torch.float16)
    assert distance(sample, cdf) < 2.2


def test_neighbours_are_independent(xpu: torch.device) -> None:
    sample = torch.randn(SIZE, device=xpu).cpu().double()
    for lag in (1, 2, 3, 4, 7, 256):
        correlation = (sample[lag:] * sample[:-lag]).mean().item()
        assert abs(correlation) < 4.5 / math.sqrt(SIZE), lag
    torch.xpu.manual_seed(20)
    later = [torch.randn(SIZE, device=xpu).cpu().double() for _ in range(2)][1]
    assert abs((sample * later).mean().item()) < 4.5 / math.sqrt(SIZE)


def test_tails_of_the_normal_distribution(xpu: torch.device) -> None:
    sample = torch.randn(1 << 22, device=xpu).cpu()
    for bound, share in ((3, 2.6998e-3), (4, 6.334e-5), (4.5, 6.795e-6)):
        expected = share * len(sample)
        found = (sample.abs() > bound).sum().item()
        assert abs(found - expected) < 4.5 * math.sqrt(expected), bound


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("policy", ["sycl", "native"])
def test_bounds(policy: str, dtype: torch.dtype, xpu: torch.device) -> None:
    with xpurt.kernel_policy(policy):
        sample = torch.empty(SIZE, dtype=dtype, device=xpu)
        for low, high in ((0, 1), (-1, 0), (10, 11), (-3, 5), (0.0625, 0.125)):
            sample.uniform_(low, high)
            assert sample.min() >= low
            assert sample.max() < high
        assert (sample.uniform_(2, 2) == 2).all()
        assert sample.exponential_(100).min() > 0
        assert sample.isfinite().all()
        assert sample.geometric_(0.9).min() == 1
        assert sample.log_normal_().min() >= 0
        assert not sample.bernoulli_(0).any()
        assert sample.bernoulli_(1).all()
        assert sample.bernoulli_(torch.ones((), dtype=dtype, device=xpu)).all()
        assert not sample.bernoulli_(torch.zeros_like(sample)).any()


def test_doubles_have_53_random_bits(xpu: torch.device) -> None:
    sample = torch.rand(1000, dtype=torch.float64, device=xpu).cpu()
    scaled = sample * 2.0**53
    assert torch.equal(scaled, scaled.floor())
    whole = scaled.long()
    for bit in range(53):
        assert 400 < ((whole >> bit) & 1).sum() < 600, bit
    assert len(sample.unique()) == 1000


def test_integers_reach_both_ends(xpu: torch.device) -> None:
    sample = torch.randint(-3, 4, (SIZE,), device=xpu).cpu()
    counts = torch.bincount(sample + 3)
    assert len(counts) == 7
    assert chi_squared(counts, torch.full((7,), 1 / 7)) < 4.5
    for dtype, most in ((torch.uint8, 255), (torch.int8, 127), (torch.bool, 1)):
        sample = torch.empty(50_000, dtype=dtype, device=xpu).random_().cpu()
        assert (sample.min(), sample.max()) == (0, most)
    sample = torch.empty(SIZE, dtype=torch.float16, device=xpu).random_().cpu()
    assert (sample.min(), sample.max()) == (0, 2048)
    wide = torch.randint(3 << 61, (SIZE,), device=xpu).cpu()
    assert distance(wide, lambda x: x / float(3 << 61)) < 2.2


def test_geometric(xpu: torch.device) -> None:
    sample = torch.empty(SIZE, dtype=torch.int32, device=xpu).geometric_(0.25).cpu()
    counts = torch.bincount(sample, minlength=13)[1:13]
    chances = 0.25 * 0.75 ** torch.arange(12, dtype=torch.float64)
    share = chances.sum().item()
    assert abs(counts.sum() / SIZE - share) < 4.5 * math.sqrt(
        share * (1 - share) / SIZE
    )
    assert chi_squared(counts, chances / chances.sum()) < 4.5


@pytest.mark.parametrize("p", [0.01, 0.3, 0.999])
def test_bernoulli(p: float, xpu: torch.device) -> None:
    deviation = math.sqrt(p * (1 - p) / SIZE)
    for sample in (
        torch.empty(SIZE, device=xpu).bernoulli_(p),
        torch.bernoulli(torch.full((SIZE,), p, device=xpu)),
        torch.native_dropout(torch.ones(SIZE, device=xpu), 1 - p, True)[1].float(),
    ):
        assert abs(sample.cpu().double().mean().item() - p) < 4.5 * deviation


def test_dropout_scales_what_is_left(xpu: torch.device) -> None:
    x = torch.linspace(1, 2, 1000).to(xpu)
    out, mask = torch.native_dropout(x, 0.25, True)
    assert torch.equal(out.cpu(), (x * mask * (1 / 0.75)).cpu())
    out, mask = torch.native_dropout(x, 1.0, True)
    assert not out.any()
    assert not mask.any()
    out, mask = torch.native_dropout(x, 0.5, False)
    assert torch.equal(out.cpu(), x.cpu())
    assert mask.all()
    out, mask = torch._fused_dropout(x, 0.75)
    assert torch.equal(out.cpu(), (x * mask * (1 / 0.75)).cpu())


def test_rrelu_keeps_its_slopes(xpu: torch.device) -> None:
    numbers = torch.linspace(-2, 1, 3000)
    numbers[1999] = 0  # counts as negative
    x = numbers.to(xpu).requires_grad_()
    out = torch.nn.functional.rrelu(x, 0.1, 0.4, training=True)
    out.sum().backward()
    slope = x.grad.cpu()
    assert torch.equal((x.detach().cpu() * slope), out.detach().cpu())
    assert (slope[2000:] == 1).all()
    below = slope[:2000]
    assert distance(below, lambda s: (s - 0.1) / 0.3) < 2.2
    assert below.min() >= 0.1
    assert below.max() < 0.4


def of_poisson(mean: float, most: int) -> torch.Tensor:
    """The chances of 0, 1, ... `most` - 1."""
    k = torch.arange(most, dtype=torch.float64)
    return torch.exp(k * math.log(mean) - mean - torch.lgamma(k + 1))


def of_binomial(n: int, p: float) -> torch.Tensor:
    """The chances of 0, 1, ... `n`."""
    k = torch.arange(n + 1, dtype=torch.float64)
    choices = math.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
    return torch.exp(choices + k * math.log(p) + (n - k) * math.log1p(-p))


def fits(sample: torch.Tensor, chances: torch.Tensor) -> bool:
    """Whether a sample fits. Classes with fewer than 20 expected values count as one."""
    whole = sample.cpu().long()
    assert torch.equal(whole.to(sample.dtype), sample.cpu())
    counts = torch.bincount(whole, minlength=len(chances))
    counts, over = counts[: len(chances)], counts[len(chances) :].sum()
    often = chances * len(sample) >= 20
    counts = torch.cat([counts[often], (counts[~often].sum() + over).view(1)])
    rest = 1 - chances[often].sum()
    chances = torch.cat([chances[often], rest.clamp(min=1e-9).view(1)])
    if rest * len(sample) < 1:
        counts, chances = counts[:-1], chances[:-1]
    return chi_squared(counts, chances) < 4.5


@pytest.mark.parametrize("mean", [0.01, 0.75, 9.9, 10.1, 50, 3000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_poisson(dtype: torch.dtype, mean: float, xpu: torch.device) -> None:
    sample = torch.poisson(torch.full((SIZE,), mean, dtype=dtype, device=xpu))
    mean = torch.tensor(mean, dtype=dtype).item()
    assert fits(sample, of_poisson(mean, int(mean + 12 * math.sqrt(mean) + 12)))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("n", "p"), [(1, 0.5), (40, 0.1), (40, 0.75), (30, 0.5), (2000, 0.02), (5000, 0.9)]
)
def test_binomial(n: int, p: float, dtype: torch.dtype, xpu: torch.device) -> None:
    like = {"dtype": dtype, "device": xpu}
    sample = torch.binomial(
        torch.full((SIZE,), n, **like), torch.full((SIZE,), p, **like)
    )
    assert fits(sample, of_binomial(n, torch.tensor(p, dtype=dtype).item()))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [0.25, 1, 2.5, 40, 1e4])
def test_gamma(dtype: torch.dtype, shape: float, xpu: torch.device) -> None:
    alpha = torch.full((SIZE,), shape, dtype=dtype)
    sample = torch._standard_gamma(alpha.to(xpu)).cpu()
    assert sample.min() >= torch.finfo(dtype).tiny
    exact = alpha[0].double()
    assert distance(sample, lambda x: torch.special.gammainc(exact, x)) < 2.2


@pytest.mark.parametrize("policy", ["sycl", "native"])
def test_ends_of_gamma(policy: str, xpu: torch.device) -> None:
    shapes = torch.tensor([0.0, 1e-30, math.nan, 1e30, math.inf], device=xpu)
    with xpurt.kernel_policy(policy):
        found = torch._standard_gamma(shapes).tolist()
        none = torch._standard_gamma(torch.ones(2, 0, device=xpu))
    tiny = torch.finfo(torch.float32).tiny
    assert found[:2] == [tiny, tiny]
    assert math.isnan(found[2])
    assert found[3] == pytest.approx(1e30)
    assert found[4] == math.inf
    assert none.shape == (2, 0)


@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradient_of_gamma(dtype: torch.dtype, xpu: torch.device) -> None:
    """By the shape, at a fixed probability: by differences of float64, and PyTorch's."""
    shape = torch.tensor([0.01, 0.3, 1, 4, 30, 99, 101, 1e3, 1e5], dtype=dtype)
    shape = shape.view(-1, 1).expand(9, 200)
    x = torch._standard_gamma(shape)
    with forced("aten::_standard_gamma_grad"):
        found = torch._standard_gamma_grad(shape.to(xpu), x.to(xpu)).cpu()
    theirs = torch._standard_gamma_grad(shape, x)
    torch.testing.assert_close(found, theirs, rtol=4e-3, atol=1e-30)
    a, y = shape.double(), x.double()
    step = 1e-5 * a
    by_shape = torch.special.gammainc(a + step, y) - torch.special.gammainc(a - step, y)
    density = torch.exp((a - 1) * y.log() - y - torch.lgamma(a))
    exact = -by_shape / (2 * step) / density
    inside = (theirs > 1e-20) & (torch.special.gammainc(a, y) - 0.5).abs().lt(0.49)
    torch.testing.assert_close(found.double()[inside], exact[inside], rtol=1e-4, atol=0)


def test_dirichlet(xpu: torch.device) -> None:
    concentration = torch.tensor([0.5, 1.5, 3.0], device=xpu).expand(SIZE, 3)
    sample = torch._sample_dirichlet(concentration).cpu().double()
    torch.testing.assert_close(sample.sum(1), torch.ones(SIZE).double())
    # Each part has a beta distribution: a mean of a / 5.
    for part, a in zip(sample.unbind(1), (0.5, 1.5, 3.0), strict=True):
        spread = math.sqrt(a * (5 - a) / (25 * 6) / SIZE)
        assert abs(part.mean().item() - a / 5) < 4.5 * spread


def test_ends_of_counts(xpu: torch.device) -> None:
    for policy in ("sycl", "native"):
        with xpurt.kernel_policy(policy):
            n, zero = torch.full((99,), 7.0, device=xpu), torch.zeros(99, device=xpu)
            assert not torch.binomial(n, zero).any()
            assert (torch.binomial(n, zero + 1) == 7).all()
            assert not torch.binomial(zero, zero + 0.5).any()
            assert not torch.poisson(zero).any()
            nan = torch.binomial(n, zero + math.nan)
            assert nan.isnan().all()
            large = torch.poisson(zero + 1e30)
            assert large.isfinite().all()


@pytest.mark.parametrize("samples", [1, 3])
def test_multinomial_without_replacement(samples: int, xpu: torch.device) -> None:
    weights = torch.tensor([1.0, 2.0, 0.0, 3.0, 4.0])
    found = weights.expand(40_000, 5).to(xpu).multinomial(samples).cpu()
    assert found.shape == (40_000, samples)
    assert chi_squared(torch.bincount(found[:, 0], minlength=5)[[0, 1, 3, 4]], (
        weights[[0, 1, 3, 4]] / 10
    )) < 4.5  # fmt: skip
    assert (found != 2).all()
    if samples == 1:
        return
    assert (found.sort().values.diff() > 0).all(), "none is chosen twice"
    # The second one of those that are left: 4, after 3 was first.
    second = found[found[:, 0] == 3, 1]
    share = (second == 4).double().mean().item()
    assert abs(share - 4 / 7) < 4.5 * math.sqrt(0.25 / len(second))


@pytest.mark.parametrize("dtype", FLOATS)
def test_multinomial_with_replacement(dtype: torch.dtype, xpu: torch.device) -> None:
    weights = torch.tensor([[1, 2, 0, 3, 4], [0, 0, 1e-3, 3e-3, 0]], dtype=dtype)
    found = weights.to(xpu).multinomial(SIZE, replacement=True).cpu()
    for row, chosen in zip(weights.double(), found, strict=True):
        counts = torch.bincount(chosen, minlength=5)
        assert not counts[row == 0].any()
        some = row > 0
        assert chi_squared(counts[some], row[some] / row.sum()) < 4.5


def test_multinomial_of_numbers_that_are_all_but_zero(xpu: torch.device) -> None:
    weights = torch.tensor([1e-40, 0.0, 1e-40]).to(xpu)
    assert not (weights.multinomial(99, replacement=True) == 1).any()
    tiny = torch.tensor([2e-38, 0.0, 6e-38]).repeat(20_000, 1).to(xpu)
    counts = torch.bincount(tiny.multinomial(1).flatten().cpu(), minlength=3)
    assert counts[1] == 0
    assert chi_squared(counts[[0, 2]], torch.tensor([0.25, 0.75])) < 4.5


def test_randperm(xpu: torch.device) -> None:
    found = torch.stack([torch.randperm(4, device=xpu) for _ in range(2400)]).cpu()
    assert torch.equal(found.sort().values, torch.arange(4).expand(2400, 4))
    order = (found * torch.tensor([64, 16, 4, 1])).sum(1).unique(return_counts=True)[1]
    assert chi_squared(order, torch.full((24,), 1 / 24)) < 4.5
    for dtype in (torch.int32, torch.uint8, torch.float32, torch.float16):
        assert torch.randperm(200, dtype=dtype, device=xpu).dtype == dtype
    assert torch.randperm(0, device=xpu).shape == (0,)
