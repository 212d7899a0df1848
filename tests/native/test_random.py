"""Random ops draw from the xpu generator, and never from the CPU's."""

from collections.abc import Callable

import pytest
import torch
import torch.utils.checkpoint

import xpurt

DRAWS: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "rand": lambda d: torch.rand(40, device=d),
    "randn": lambda d: torch.randn(40, device=d),
    "randint": lambda d: torch.randint(1000, (40,), device=d),
    "randperm": lambda d: torch.randperm(40, device=d),
    "bernoulli": lambda d: torch.full((40,), 0.5, device=d).bernoulli(),
    "multinomial": lambda d: torch.ones(40, device=d).multinomial(20),
    "poisson": lambda d: torch.poisson(torch.full((40,), 9.0, device=d)),
    "exponential": lambda d: torch.empty(40, device=d).exponential_(),
    "dropout": lambda d: torch.nn.functional.dropout(torch.ones(40, device=d)),
    "native_dropout": lambda d: torch.native_dropout(
        torch.ones(40, device=d), 0.5, True
    )[0],
    "gamma": lambda d: torch._standard_gamma(torch.ones(40, device=d)),
    "rrelu": lambda d: torch.nn.functional.rrelu(
        -torch.ones(40, device=d), training=True
    ),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=list(DRAWS))
def test_the_xpu_seed_decides(
    draw: Callable[[torch.device], torch.Tensor], xpu: torch.device
) -> None:
    cpu_state = torch.get_rng_state()
    torch.xpu.manual_seed(7)
    first, second = draw(xpu), draw(xpu)
    torch.xpu.manual_seed(7)
    again = draw(xpu)
    assert torch.equal(first.cpu(), again.cpu())
    assert not torch.equal(first.cpu(), second.cpu())
    assert torch.equal(torch.get_rng_state(), cpu_state)


def test_a_generator_that_is_given(xpu: torch.device) -> None:
    generator = torch.Generator(xpu).manual_seed(3)
    default = torch.xpu.get_rng_state()
    first = torch.randn(20, generator=generator, device=xpu)
    generator.manual_seed(3)
    assert torch.equal(
        first.cpu(), torch.randn(20, generator=generator, device=xpu).cpu()
    )
    assert torch.equal(torch.xpu.get_rng_state(), default)


def test_a_state_that_is_put_back_repeats_the_numbers(xpu: torch.device) -> None:
    state = torch.xpu.get_rng_state()
    first = torch.rand(20, device=xpu)
    torch.xpu.set_rng_state(state)
    assert torch.equal(first.cpu(), torch.rand(20, device=xpu).cpu())


def test_seeds_that_differ_in_their_high_half_give_other_numbers(
    xpu: torch.device,
) -> None:
    torch.xpu.manual_seed(1)
    first = torch.rand(20, device=xpu)
    torch.xpu.manual_seed(1 + (1 << 40))
    assert not torch.equal(first.cpu(), torch.rand(20, device=xpu).cpu())


def test_the_numbers_have_the_right_distribution(xpu: torch.device) -> None:
    torch.xpu.manual_seed(0)
    uniform = torch.rand(100_000, device=xpu).cpu()
    # Four standard errors of the mean of n uniform numbers: 4 * sqrt(1 / 12 / n).
    assert abs(uniform.mean().item() - 0.5) < 0.0037
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(torch.randn(100_000, device=xpu).std().item() - 1) < 0.01


def test_a_generator_of_another_device_is_refused(xpu: torch.device) -> None:
    with pytest.raises(RuntimeError, match="Expected a 'xpu' device type"):
        torch.rand(3, device=xpu, generator=torch.Generator())
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type"):
        torch.rand(3, generator=torch.Generator(xpu))


def test_checkpoints_draw_the_same_mask_again(xpu: torch.device) -> None:
    torch.xpu.manual_seed(4)
    x = torch.ones(5000, device=xpu, requires_grad=True)
    masks = []

    def block(x: torch.Tensor) -> torch.Tensor:
        out = torch.nn.functional.dropout(x, 0.5)
        masks.append(out.detach().cpu())
        return out * x

    out = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
    torch.rand(3, device=xpu)
    out.sum().backward()
    first, again = masks
    assert torch.equal(first, again)
    assert x.grad is not None
    assert torch.equal(x.grad.cpu(), 2 * first)


def test_a_state_in_mid_stream(xpu: torch.device) -> None:
    generator = torch.Generator(xpu).manual_seed(9)
    torch.randn(1000, device=xpu, generator=generator)
    state = generator.get_state()
    expected = [draw_next(generator, xpu) for _ in range(2)]
    generator.set_state(state)
    assert torch.equal(draw_next(generator, xpu), expected[0])
    with xpurt.kernel_policy("sycl"):
        assert torch.equal(draw_next(generator, xpu), expected[1])


def draw_next(generator: torch.Generator, device: torch.device) -> torch.Tensor:
    return torch.empty(77, device=device).exponential_(generator=generator).cpu()


def test_gradients_of_dropout(xpu: torch.device) -> None:
    x = torch.ones(1000, device=xpu, requires_grad=True)
    out = torch.nn.functional.dropout(x, 0.25)
    out.backward(torch.full_like(out, 3.0))
    assert x.grad is not None
    assert torch.equal(x.grad.cpu(), 3 * out.detach().cpu())
