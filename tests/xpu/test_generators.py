"""Seeds and states of the random generators."""

from collections.abc import Iterator

import pytest
import torch

import xpurt


@pytest.fixture(autouse=True)
def states_as_they_were(xpu: torch.device) -> Iterator[None]:
    states = torch.xpu.get_rng_state_all()
    cpu = torch.get_rng_state()
    yield
    torch.xpu.set_rng_state_all(states)
    torch.set_rng_state(cpu)


def test_seeds() -> None:
    torch.xpu.manual_seed(11)
    assert torch.xpu.initial_seed() == 11
    torch.manual_seed(12)
    assert torch.xpu.initial_seed() == 12
    torch.xpu.manual_seed_all(13)
    assert [g.initial_seed() for g in torch.xpu.default_generators] == [
        13
    ] * torch.xpu.device_count()
    torch.xpu.seed_all()
    assert torch.xpu.initial_seed() != 13
    torch.xpu.seed()
    assert torch.initial_seed() == 12


def test_the_state_comes_back(xpu: torch.device) -> None:
    torch.xpu.manual_seed(5)
    state = torch.xpu.get_rng_state(xpu)
    assert state.device.type == "cpu"
    first = torch.rand(100, device=xpu).cpu()
    assert not torch.equal(torch.xpu.get_rng_state(), state)
    torch.xpu.set_rng_state(state, xpu)
    assert torch.equal(torch.rand(100, device=xpu).cpu(), first)


def test_fork_rng_of_the_device(xpu: torch.device) -> None:
    torch.xpu.manual_seed(6)
    with torch.random.fork_rng(device_type="xpu"):
        torch.xpu.manual_seed(7)
        torch.rand(3, device=xpu)
    assert torch.xpu.initial_seed() == 6
    again = torch.rand(10, device=xpu).cpu()
    torch.xpu.manual_seed(6)
    assert torch.equal(torch.rand(10, device=xpu).cpu(), again)


def test_a_generator_of_one_s_own(xpu: torch.device) -> None:
    generator = torch.Generator(xpu)
    assert generator.device == xpu
    generator.manual_seed(8)
    default = torch.xpu.get_rng_state()
    first = torch.rand(10, device=xpu, generator=generator).cpu()
    assert torch.equal(torch.xpu.get_rng_state(), default)
    generator.manual_seed(8)
    assert torch.equal(torch.rand(10, device=xpu, generator=generator).cpu(), first)


def test_the_cpu_s_generator_is_left_alone(xpu: torch.device) -> None:
    before = torch.get_rng_state()
    torch.rand(10, device=xpu)
    torch.nn.functional.dropout(torch.ones(10, device=xpu))
    assert torch.equal(torch.get_rng_state(), before)


def test_generators_that_share_a_state(xpu: torch.device) -> None:
    generator = torch.Generator(xpu).manual_seed(3)
    shared = generator.graphsafe_get_state()
    copy = generator.clone_state()
    first = torch.rand(5, device=xpu, generator=generator).cpu()
    assert shared.get_offset() == generator.get_offset() > 0
    assert copy.get_offset() == 0
    second = torch.rand(5, device=xpu, generator=shared).cpu()
    assert generator.get_offset() == shared.get_offset()
    generator.graphsafe_set_state(copy)
    assert torch.equal(torch.rand(5, device=xpu, generator=generator).cpu(), first)
    assert copy.get_offset() == generator.get_offset() < shared.get_offset()
    assert torch.equal(torch.rand(5, device=xpu, generator=copy).cpu(), second)
    with pytest.raises(TypeError, match="state of an xpu generator"):
        generator.graphsafe_set_state(torch.Generator())


def test_offsets(xpu: torch.device) -> None:
    torch.xpu.manual_seed(1)
    assert torch.xpu._get_rng_state_offset() == 0
    torch.xpu._set_rng_state_offset(400)
    later = torch.rand(4, device=xpu).cpu()
    assert torch.xpu._get_rng_state_offset() > 400
    torch.xpu._set_rng_state_offset(400, xpu)
    assert torch.equal(torch.rand(4, device=xpu).cpu(), later)
    generator = torch.xpu.default_generators[0]
    with pytest.raises(RuntimeError, match="multiple of 4"):
        generator.set_offset(3)
    state = generator.get_state()
    state[8] = 3
    with pytest.raises(RuntimeError, match="multiple of 4"):
        generator.set_state(state)


@pytest.mark.skipif(
    not hasattr(torch.Generator, "philox_state"), reason="new in PyTorch 2.14"
)
def test_a_kernel_of_one_s_own_takes_numbers(xpu: torch.device) -> None:
    generator = torch.Generator(xpu).manual_seed(2**63 + 5)
    generator.set_offset(8)
    for increment, later in ((4, 12), (5, 20), (0, 20), (1, 24)):
        before = generator.get_offset()
        seed, offset, in_graph = generator.philox_state(increment)
        assert {each.device.type for each in (seed, offset, in_graph)} == {"cpu"}
        assert seed.item() & (2**64 - 1) == 2**63 + 5
        assert (offset.tolist(), in_graph.tolist()) == ([before], [0])
        assert generator.get_offset() == later


def test_states_that_are_none(xpu: torch.device) -> None:
    generator = torch.Generator(xpu).manual_seed(0x0102030405060708)
    good = generator.get_state()
    strided = torch.zeros(32, dtype=torch.uint8)[::2]
    strided.copy_(good)
    for bad, error, message in (
        (strided, RuntimeError, "must be contiguous"),
        (good.view(torch.int64), TypeError, "must be a torch.ByteTensor"),
        (good.to(xpu), TypeError, "must be a torch.ByteTensor"),
        (good[:8], ValueError, "has 16 bytes"),
    ):
        with pytest.raises(error, match=message):
            generator.set_state(bad)
        assert torch.equal(generator.get_state(), good)
    within = torch.zeros(20, dtype=torch.uint8)[3:19]
    within.copy_(good)
    generator.manual_seed(1)
    generator.set_state(within)
    assert torch.equal(generator.get_state(), good)


def test_a_generator_of_a_replaced_mapping() -> None:
    with xpurt.xpu_mapping("CPU"):
        generator = torch.Generator("xpu")
        generator.manual_seed(1)
    with xpurt.xpu_mapping("explicit"):
        with pytest.raises(RuntimeError, match="mapping that has been replaced"):
            torch.rand(3, device="xpu", generator=generator)
        with pytest.raises(RuntimeError, match="mapping that has been replaced"):
            generator.manual_seed(2)


@pytest.mark.mappings("explicit")
def test_a_generator_of_another_ordinal(xpu: torch.device) -> None:
    if torch.xpu.device_count() < 2:
        pytest.skip("the virtual GPU is switched off")
    generator = torch.Generator("xpu:0").manual_seed(1)
    before = generator.get_state()
    for draw in (
        lambda: torch.rand(3, device="xpu:1", generator=generator),
        lambda: torch.empty(3, device="xpu:1").normal_(generator=generator),
        lambda: torch.randperm(3, device="xpu:1", generator=generator),
        lambda: torch.ones(3, device="xpu:1").multinomial(1, generator=generator),
    ):
        with pytest.raises(
            RuntimeError,
            match="Expected a 'xpu:1' generator device but found 'xpu:0'",
        ):
            draw()
    assert torch.equal(generator.get_state(), before)
    torch.rand(3, device="xpu:0", generator=generator)


def test_a_loader_draws_where_its_tensors_are_made(xpu: torch.device) -> None:
    data = torch.utils.data.TensorDataset(torch.arange(8.0))

    def batches() -> list[list[float]]:
        generator = torch.Generator(xpu).manual_seed(2)
        loader = torch.utils.data.DataLoader(
            data, batch_size=4, shuffle=True, generator=generator
        )
        return [batch.tolist() for (batch,) in loader]

    # The sampler draws on the default device, beside CUDA as here.
    with pytest.raises(RuntimeError, match=r"Expected a 'cpu' .* but found 'xpu'"):
        batches()
    with torch.device(xpu):
        first, second = batches(), batches()
    assert first == second
    assert sorted(first[0] + first[1]) == [*range(8)]
