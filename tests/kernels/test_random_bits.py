"""Random numbers are the same bits on the host, on every device, and in any layout."""

from collections.abc import Callable

import pytest
import torch
from torch.nn.functional import dropout

import xpurt
from kernels.kernel_forced import tiers_of
from kernels.kernel_places import places
from kernels.random_draws import FILLS, FLOATS, bits, cases
from xpurt import _C

ON_OTHER_DEVICES = [
    (name, dtype)
    for name, dtype in cases()
    if dtype == torch.float32 or (name, dtype) == ("random", torch.int64)
]

RESULTS: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "rand": lambda d: torch.rand(700, device=d),
    "rand of complex": lambda d: torch.view_as_real(
        torch.rand(300, dtype=torch.complex64, device=d)
    ),
    "randn": lambda d: torch.randn(33, 21, device=d),
    "randn of complex": lambda d: torch.view_as_real(
        torch.randn(300, dtype=torch.complex64, device=d)
    ),
    "randn_like": lambda d: torch.randn_like(torch.empty(20, 30, device=d).t()),
    "randint": lambda d: torch.randint(-5, 9, (700,), device=d),
    "randint_like": lambda d: torch.randint_like(torch.empty(700, device=d), 1000),
    "normal of means": lambda d: torch.normal(
        torch.arange(600.0).to(d), 0.5 + torch.arange(600.0).to(d)
    ),
    "bernoulli": lambda d: torch.bernoulli(torch.linspace(0, 1, 700).to(d)),
    "dropout": lambda d: dropout(torch.arange(700.0).to(d), 0.3),
    "alpha_dropout": lambda d: torch.nn.functional.alpha_dropout(
        torch.arange(700.0).to(d), 0.3, training=True
    ),
    "feature_dropout": lambda d: torch.nn.functional.dropout2d(
        torch.ones(9, 8, 2, 3).to(d), 0.3
    ),
    "channels_last": lambda d: dropout(
        torch.ones(3, 5, 7, 11).to(d, memory_format=torch.channels_last), 0.3
    ),
    "randperm": lambda d: torch.randperm(700, device=d),
    "poisson": lambda d: torch.poisson(torch.linspace(0, 60, 700).to(d)),
    "poisson of doubles": lambda d: torch.poisson(
        torch.linspace(0, 1e6, 700, dtype=torch.float64).to(d)
    ),
    "binomial": lambda d: torch.binomial(
        torch.arange(700.0).to(d), torch.linspace(0, 1, 700).to(d)
    ),
    "gamma": lambda d: torch._standard_gamma(torch.linspace(0, 9, 700).to(d)),
    "gamma of doubles": lambda d: torch._standard_gamma(
        torch.logspace(-3, 9, 700, dtype=torch.float64).to(d)
    ),
    "multinomial": lambda d: torch.linspace(0, 1, 700).to(d).multinomial(1),
    "multinomial of rows": lambda d: (
        torch.linspace(0, 1, 700, dtype=torch.bfloat16)
        .view(70, 10)
        .to(d)
        .multinomial(4)
    ),
    "multinomial with replacement": lambda d: (
        torch.linspace(0, 1, 700, dtype=torch.float64)
        .view(7, 100)
        .to(d)
        .multinomial(50, replacement=True)
    ),
    "rrelu": lambda d: torch.nn.functional.rrelu(
        torch.linspace(-2, 1, 700).to(d), training=True
    ),
}


def drawn(policy: str, draw: Callable[[], torch.Tensor]) -> torch.Tensor:
    torch.xpu.manual_seed(2**40 + 5)
    torch.xpu._set_rng_state_offset(2**33 + 4)
    with xpurt.kernel_policy(policy):
        return bits(draw())


def on_the_queue() -> bool:
    """Whether every random op since the report was reset ran as a kernel."""
    tiers = {row[1] for row in _C.op_report() if row[0] in random_ops()}
    return tiers == {"sycl"}


def random_ops() -> set[str]:
    return {row.aten for row in xpurt.kernels.ROWS if getattr(row, "draws", False)}


@pytest.mark.one_in(2)
@pytest.mark.beyond_cpu(case=ON_OTHER_DEVICES)
@pytest.mark.parametrize("case", cases(), ids=lambda c: f"{c[0]}-{str(c[1])[6:]}")
def test_fills(case: tuple[str, torch.dtype], xpu: torch.device) -> None:
    name, dtype = case

    def fill() -> torch.Tensor:
        return FILLS[name](torch.empty(1003, dtype=dtype, device=xpu))

    _C.reset_op_report()
    kernel = drawn("sycl", fill)
    assert on_the_queue()
    assert torch.equal(kernel, drawn("native", fill))
    assert torch.equal(kernel, drawn("auto", fill))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("draw", RESULTS.values(), ids=list(RESULTS))
def test_results(
    draw: Callable[[torch.device], torch.Tensor], xpu: torch.device
) -> None:
    _C.reset_op_report()
    kernel = drawn("sycl", lambda: draw(xpu))
    assert on_the_queue()
    assert torch.equal(kernel, drawn("native", lambda: draw(xpu)))


@pytest.mark.mappings("AUTO")
@pytest.mark.parametrize("name", ["normal", "random", "bernoulli of tensor"])
def test_devices_of_one_ordinal(name: str, xpu: torch.device) -> None:
    found = []
    for place in places():
        with place.chosen():
            fill = lambda: FILLS[name](torch.empty(5000, device=xpu))  # noqa: E731
            found.append(drawn("sycl", fill))
    assert len(found) == 2
    assert torch.equal(*found)


@pytest.mark.parametrize("policy", ["sycl", "native"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_element_i_does_not_depend_on_the_layout(
    dtype: torch.dtype, policy: str, xpu: torch.device
) -> None:
    """Nor on how many there are."""
    line = drawn(policy, lambda: torch.empty(60, dtype=dtype, device=xpu).normal_())
    more = drawn(policy, lambda: torch.empty(99, dtype=dtype, device=xpu).normal_())
    assert torch.equal(more[: len(line)], line)

    def transposed() -> torch.Tensor:
        return torch.empty(4, 3, 5, dtype=dtype, device=xpu).transpose(0, 2).normal_()

    assert torch.equal(drawn(policy, transposed).flatten(), line)

    def every_second() -> torch.Tensor:
        whole = torch.zeros(121, dtype=dtype, device=xpu)
        whole[1::2].normal_()
        assert not whole[::2].any()
        return whole[1::2]

    assert torch.equal(drawn(policy, every_second), line)


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("name", ["normal", "log_normal", "uniform", "random"])
def test_hosts_make_several_blocks_at_once(name: str, xpu: torch.device) -> None:
    """Up to 16 of them, of 4 numbers: whatever is left over is the same."""
    whole = drawn("sycl", lambda: FILLS[name](torch.empty(200, device=xpu)))
    for count in (1, 3, 4, 5, 31, 32, 33, 63, 64, 65, 127, 128, 130, 200):
        some = drawn("native", lambda n=count: FILLS[name](torch.empty(n, device=xpu)))
        assert torch.equal(some, whole[: len(some)]), count


def test_a_published_vector(xpu: torch.device) -> None:
    """Philox4x32-10 of key and counter zero, as in the tests of Random123."""
    for policy in ("sycl", "native"):
        torch.xpu.manual_seed(0)
        with xpurt.kernel_policy(policy):
            found = torch.empty(2, dtype=torch.int64, device=xpu).random_(
                -(2**63), None
            )
        words = [0x6627E8D5E169C58D, 0xBC57AC4C9B00DBD8]
        assert [n % 2**64 for n in found.tolist()] == words


@pytest.mark.parametrize("policy", ["sycl", "native"])
def test_the_offset_grows_by_four(policy: str, xpu: torch.device) -> None:
    generator = torch.Generator(xpu).manual_seed(1)
    with xpurt.kernel_policy(policy):
        for count, (name, fill) in enumerate(FILLS.items()):
            assert generator.get_offset() == 4 * count, name
            fill(torch.empty(1 + 37 * count, device=xpu), generator=generator)
            fill(torch.empty(0, 3, device=xpu), generator=generator)
    assert tiers_of("xpurt::normal_") <= {"sycl", "native", "copy"}


def test_large_tensors_take_the_kernel(
    xpu: torch.device, request: pytest.FixtureRequest
) -> None:
    """By the table of costs: learning tries both, and begins with what is built."""
    _C.set_learning(False)
    request.addfinalizer(lambda: _C.set_learning(True))
    _C.reset_op_report()
    torch.empty(1 << 20, device=xpu).normal_()
    assert tiers_of("xpurt::normal_") == {"sycl"}
