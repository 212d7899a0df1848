"""States of random generators inside captures: activation checkpointing draws the same
numbers in its second forward, at each replay."""

from collections.abc import Callable

import pytest
import torch
from captures import captured, ramp
from torch.utils.checkpoint import checkpoint


def dropped(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.dropout(x, 0.5) * x


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_draws_the_same_numbers_again(
    cpu: torch.device, reentrant: bool
) -> None:
    x = torch.ones(1000, device=cpu, requires_grad=True)

    def work() -> tuple[torch.Tensor, torch.Tensor]:
        x.grad = None
        # The numbers between the two forwards have to be others.
        y = checkpoint(dropped, x, use_reentrant=reentrant) + 0 * torch.rand_like(x)
        y.sum().backward()
        assert x.grad is not None
        return y.detach(), x.grad

    torch.xpu.manual_seed(5)
    eager = [tuple(t.cpu() for t in work()) for _ in range(3)]
    graph = torch.xpu.XPUGraph()
    with torch.xpu.graph(graph):
        y, gradient = work()
    torch.xpu.manual_seed(5)
    for expected in eager:
        graph.replay()
        assert torch.equal(gradient.cpu(), 2 * y.cpu())
        torch.testing.assert_close((y.cpu(), gradient.cpu()), expected)
    assert not torch.equal(eager[0][0], eager[1][0])


def test_forward_and_backward_in_graphs_of_their_own(cpu: torch.device) -> None:
    x = torch.ones(1000, device=cpu, requires_grad=True)
    ones, forward, backward = (
        torch.ones(1000, device=cpu),
        torch.xpu.XPUGraph(),
        torch.xpu.XPUGraph(),
    )
    with torch.xpu.graph(forward):
        y = checkpoint(dropped, x, use_reentrant=False)
    with torch.xpu.graph(backward, pool=forward.pool()):
        torch.rand_like(x)
        (gradient,) = torch.autograd.grad(y, x, ones)
    masks = []
    for _ in range(3):
        forward.replay()
        masks.append(y.detach().cpu().clone())
        torch.rand(10, device=cpu)
        backward.replay()
        assert torch.equal(gradient.cpu(), 2 * masks[-1])
    assert not torch.equal(masks[0], masks[1])


def test_a_state_of_the_capture_is_a_place_to_go_back_to(cpu: torch.device) -> None:
    def work() -> list[torch.Tensor]:
        state = torch.xpu.get_rng_state()
        first = torch.rand(100, device=cpu)
        torch.rand(7, device=cpu)
        torch.xpu.set_rng_state(state)
        return [first, torch.rand(100, device=cpu), torch.rand(100, device=cpu)]

    graph = torch.xpu.XPUGraph()
    with torch.xpu.graph(graph):
        results = work()
    torch.xpu.manual_seed(1)
    eager = [[t.cpu() for t in work()] for _ in range(2)]
    torch.xpu.manual_seed(1)
    for expected in eager:
        graph.replay()
        found = [t.cpu() for t in results]
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        assert torch.equal(found[0], found[1])
        assert not torch.equal(found[0], found[2])
    assert not torch.equal(eager[0][0], eager[1][0])


STATES: dict[str, Callable[[torch.Generator, torch.Tensor], object]] = {
    "manual_seed": lambda g, s: g.manual_seed(3),
    "all seeds": lambda g, s: torch.manual_seed(3),
    "seed": lambda g, s: g.seed(),
    "set_state": lambda g, s: g.set_state(s),
    "set_offset": lambda g, s: g.set_offset(8),
    "get_offset": lambda g, s: g.get_offset(),
    "clone_state": lambda g, s: g.clone_state(),
}


@pytest.mark.parametrize("use", STATES.values(), ids=list(STATES))
def test_what_would_repeat_the_same_numbers_is_refused(
    cpu: torch.device, use: Callable[[torch.Generator, torch.Tensor], object]
) -> None:
    x, generator = ramp(cpu), torch.xpu.default_generators[0]
    state = generator.get_state()
    graph = torch.xpu.XPUGraph()

    def work() -> None:
        with torch.xpu.graph(graph):
            x.add_(1)
            use(generator, state)

    with pytest.raises(RuntimeError, match=r"generator.* cannot be captured"):
        work()
    assert torch.equal(generator.get_state(), state)
    with pytest.raises(RuntimeError, match="capture was invalidated"):
        graph.replay()


def test_a_state_of_a_capture_is_none_outside(cpu: torch.device) -> None:
    graph = torch.xpu.XPUGraph()
    with torch.xpu.graph(graph):
        state = torch.xpu.get_rng_state()
        torch.rand(3, device=cpu)
    before = torch.xpu.get_rng_state()
    with pytest.raises(RuntimeError, match="taken while an XPU graph was captured"):
        torch.xpu.set_rng_state(state)
    assert torch.equal(torch.xpu.get_rng_state(), before)
    del graph
    with pytest.raises(RuntimeError, match="a graph that is gone"):
        captured(lambda: torch.xpu.set_rng_state(state))


def test_each_generator_moves_on_by_itself(cpu: torch.device) -> None:
    generator = torch.Generator(cpu).manual_seed(7)
    x = ramp(cpu)
    graph = torch.xpu.XPUGraph()
    graph.register_generator_state(generator)
    with torch.xpu.graph(graph):
        own = torch.empty_like(x).uniform_(generator=generator)
        default = torch.rand_like(x)
    torch.xpu.manual_seed(8)
    for _ in range(3):
        graph.replay()
    twin = torch.Generator(cpu).manual_seed(7)
    for _ in range(3):
        expected = torch.rand(1000, device=cpu, generator=twin)
    assert torch.equal(own.cpu(), expected.cpu())
    assert generator.get_offset() == twin.get_offset()
    assert torch.xpu.default_generators[0].get_offset() == twin.get_offset()
    assert not torch.equal(own.cpu(), default.cpu())


def test_states_are_changed_within_a_capture(cpu: torch.device) -> None:
    generator = torch.xpu.default_generators[0]
    generator.manual_seed(0)
    old, new = generator.graphsafe_get_state(), generator.clone_state()

    def work() -> list[torch.Tensor]:
        generator.graphsafe_set_state(new)
        drawn = [torch.rand(5, device=cpu)]
        generator.graphsafe_set_state(old)
        return [*drawn, torch.rand(5, device=cpu), torch.rand(5, device=cpu)]

    graph = torch.xpu.XPUGraph()
    for state in (old, new):
        graph.register_generator_state(state)
    with torch.xpu.graph(graph):
        results = work()
    for state in (old, new):
        state.manual_seed(2)
    graph.replay()
    offsets = old.get_offset(), new.get_offset()
    for state in (old, new):
        state.manual_seed(2)
    for found, expected in zip(results, work(), strict=True):
        assert torch.equal(found.cpu(), expected.cpu())
    assert offsets == (old.get_offset(), new.get_offset())


def test_what_is_registered(cpu: torch.device) -> None:
    graph = torch.xpu.XPUGraph()
    with pytest.raises(RuntimeError, match="Expected a 'xpu' device type"):
        graph.register_generator_state(torch.Generator())
    with (
        pytest.raises(RuntimeError, match="during capturing stage"),
        torch.xpu.graph(graph),
    ):
        graph.register_generator_state(torch.xpu.default_generators[0])
