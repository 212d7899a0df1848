"""Random ops refuse what they refuse on the CPU, in the same words."""

from collections.abc import Callable

import pytest
import torch

import xpurt

Call = Callable[[torch.device], object]


def some(d: torch.device, *values: float) -> torch.Tensor:
    return torch.tensor(values or (0.25, 0.5, 0.75), dtype=torch.float32, device=d)


CALLS: dict[str, Call] = {
    "uniform_ backwards": lambda d: some(d).uniform_(3, 2),
    "uniform_ too wide": lambda d: some(d).uniform_(-3e38, 3e38),
    "uniform_ beyond half": lambda d: some(d).half().uniform_(0, 1e6),
    "uniform_ of integers": lambda d: some(d).int().uniform_(),
    "uniform_ of overlapping": lambda d: some(d)[:1].expand(3).uniform_(),
    "normal_ std": lambda d: some(d).normal_(0, -1),
    "normal_ of integers": lambda d: some(d).int().normal_(),
    "normal_ of overlapping": lambda d: some(d)[:1].expand(3).normal_(),
    "normal of stds": lambda d: torch.normal(0.0, some(d, 1, -1)),
    "normal of shapes": lambda d: torch.normal(some(d), some(d, 1, 2)),
    "bernoulli_": lambda d: some(d).bernoulli_(1.5),
    "bernoulli_ of nan": lambda d: some(d).bernoulli_(float("nan")),
    "bernoulli_ of shapes": lambda d: some(d).bernoulli_(some(d, 0.1, 0.2)),
    "bernoulli_ of overlapping": lambda d: some(d)[:1].expand(3).bernoulli_(),
    "bernoulli of integers": lambda d: torch.bernoulli(some(d).int()),
    "exponential_": lambda d: some(d).exponential_(0),
    "exponential_ of integers": lambda d: some(d).int().exponential_(),
    "geometric_": lambda d: some(d).geometric_(1),
    "cauchy_": lambda d: some(d).cauchy_(0, -1),
    "cauchy_ of integers": lambda d: some(d).int().cauchy_(),
    "log_normal_": lambda d: some(d).log_normal_(0, -1),
    "log_normal_ of integers": lambda d: some(d).int().log_normal_(),
    "random_ of nothing": lambda d: some(d).int().random_(5, 5),
    "random_ beyond int8": lambda d: some(d).to(torch.int8).random_(0, 500),
    "randint": lambda d: torch.randint(5, 2, (3,), device=d),
    "randperm": lambda d: torch.randperm(-1, device=d),
    "randperm beyond half": lambda d: torch.randperm(
        5000, dtype=torch.float16, device=d
    ),
    "multinomial of 3 dims": lambda d: some(d).view(1, 1, 3).multinomial(1),
    "multinomial of none": lambda d: some(d).multinomial(0),
    "multinomial of too many": lambda d: some(d).multinomial(4),
    "multinomial of integers": lambda d: some(d).int().multinomial(1),
    "multinomial of no categories": lambda d: (
        some(d).view(1, 3)[:, :0].multinomial(2, True)
    ),
    "multinomial below zero": lambda d: some(d, 1, -1).multinomial(1),
    "multinomial below zero, again": lambda d: some(d, 1, -1).multinomial(2, True),
    "multinomial of infinity": lambda d: some(d, 1, torch.inf).multinomial(1),
    "multinomial of infinity, again": lambda d: some(d, 1, torch.inf).multinomial(
        2, True
    ),
    "multinomial of zeros": lambda d: some(d, 0, 0).multinomial(1),
    "multinomial of zeros, again": lambda d: some(d, 0, 0).multinomial(2, True),
    "multinomial into floats": lambda d: torch.multinomial(some(d), 2, out=some(d)),
    "poisson of integers": lambda d: torch.poisson(some(d).int()),
    "binomial of integers": lambda d: torch.binomial(some(d).int(), some(d)),
    "binomial of mixed": lambda d: torch.binomial(some(d), some(d).double()),
    "dropout": lambda d: torch.native_dropout(some(d), 1.5, True),
    "rrelu": lambda d: torch.nn.functional.rrelu(some(d), 0.5, 0.2, True),
    "rrelu of shapes": lambda d: torch.ops.aten.rrelu_with_noise(
        some(d), some(d)[:2], 0.1, 0.2, True
    ),
}


def told(call: Call, device: torch.device) -> tuple[type, str]:
    with pytest.raises(Exception) as caught:
        call(device)
    text = str(caught.value).split("\nException raised")[0]
    return caught.type, text.replace("xpu:0", "cpu")


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_same_error(call: Call, xpu: torch.device) -> None:
    expected = told(call, torch.device("cpu"))
    state = torch.xpu.get_rng_state()
    assert told(call, xpu) == expected
    assert torch.equal(torch.xpu.get_rng_state(), state), "nothing was drawn"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda d: torch.bernoulli(some(d, 0.5, 1.5)), "probabilities"),
        (lambda d: torch.bernoulli(some(d, 0.5, torch.nan)), "probabilities"),
        (lambda d: torch.poisson(some(d, 5, -1)), "invalid Poisson rate"),
        (lambda d: torch.poisson(some(d, 5, torch.nan)), "invalid Poisson rate"),
    ],
)
def test_values_that_a_kernel_finds_wrong(
    call: Call, words: str, xpu: torch.device
) -> None:
    """If a kernel reads them, the next wait raises."""
    with pytest.raises(RuntimeError), xpurt.kernel_policy("native"):
        call(xpu)

    def call_and_wait() -> None:  # a timed sample waits in the call
        call(xpu)
        torch.xpu.synchronize()

    with xpurt.kernel_policy("sycl"), pytest.raises(RuntimeError, match=words):
        call_and_wait()
    torch.xpu.synchronize()
