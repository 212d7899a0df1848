"""Random numbers in XPU graphs: each replay draws those that come next."""

from collections.abc import Callable

import pytest
import torch
from captures import captured, ramp

DRAWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "rand": torch.rand_like,
    "randn": torch.randn_like,
    "dropout": lambda x: torch.nn.functional.dropout(x, 0.5),
    "several": lambda x: torch.bernoulli(x / 1000) + torch.randint_like(x, 100),
    "poisson": torch.poisson,
    "transposed": lambda x: x.view(50, 20).t().exponential_().contiguous(),
}


def drawn(
    draw: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor
) -> torch.Tensor:
    return draw(x.clone()).cpu()


@pytest.mark.parametrize("draw", DRAWS.values(), ids=list(DRAWS))
def test_a_replay_draws_what_an_eager_run_would(
    draw: Callable[[torch.Tensor], torch.Tensor], cpu: torch.device
) -> None:
    x = ramp(cpu)
    torch.xpu.manual_seed(31)
    expected = [drawn(draw, x) for _ in range(4)]
    end = torch.xpu.get_rng_state()
    graph, result = captured(lambda: draw(x.clone()))
    torch.xpu.manual_seed(31)
    for number, each in enumerate(expected):
        if number == 2:  # eager runs between replays take their share
            assert torch.equal(drawn(draw, x), each)
            continue
        graph.replay()
        assert torch.equal(result.cpu(), each)
    assert torch.equal(torch.xpu.get_rng_state(), end)
    assert not torch.equal(expected[0], expected[1])


def test_a_graph_that_draws_nothing_leaves_the_generator_alone(
    cpu: torch.device,
) -> None:
    x = ramp(cpu)
    graph, _ = captured(lambda: x.add_(1))
    state = torch.xpu.get_rng_state()
    graph.replay()
    assert torch.equal(torch.xpu.get_rng_state(), state)


def test_uninitialized_memory_that_is_filled(cpu: torch.device) -> None:
    x = ramp(cpu)
    torch.use_deterministic_algorithms(True)
    try:
        graph, result = captured(lambda: torch.rand_like(x))
    finally:
        torch.use_deterministic_algorithms(False)
    torch.xpu.manual_seed(1)
    expected = torch.rand_like(x).cpu()
    torch.xpu.manual_seed(1)
    graph.replay()
    assert torch.equal(result.cpu(), expected)


def test_a_training_step_with_dropout(cpu: torch.device) -> None:
    weight = torch.ones(1000, device=cpu, requires_grad=True)

    def work() -> torch.Tensor:
        out = torch.nn.functional.dropout(weight, 0.5)
        (gradient,) = torch.autograd.grad(out.sum(), weight)
        return gradient

    graph, gradient = captured(work)
    torch.xpu.manual_seed(2)
    graph.replay()
    first = gradient.cpu()
    assert set(first.unique().tolist()) == {0.0, 2.0}
    torch.xpu.manual_seed(2)
    eager = torch.nn.functional.dropout(torch.ones(1000, device=cpu), 0.5)
    assert torch.equal(first, eager.cpu())
    graph.replay()
    assert not torch.equal(gradient.cpu(), first)


@pytest.mark.skipif(
    not hasattr(torch.Generator, "philox_state"), reason="new in PyTorch 2.14"
)
def test_a_kernel_of_one_s_own_takes_numbers_at_each_replay(cpu: torch.device) -> None:
    generator = torch.xpu.default_generators[0]
    in_graph: list[int] = []

    def positions() -> torch.Tensor:
        torch.rand(5, device=cpu)
        seed, offset, distance = generator.philox_state(6)
        in_graph.append(int(distance))
        return torch.cat([seed, offset])

    torch.xpu.manual_seed(3)
    graph, result = captured(positions)
    torch.xpu.manual_seed(7)
    for offset in (0, 12):
        graph.replay()
        assert result.tolist() == [7, offset]
    assert in_graph == [4]
    assert generator.get_offset() == 24
