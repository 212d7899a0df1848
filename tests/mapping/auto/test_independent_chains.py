"""Chains of ops in a simulated program, whose host PyTorch's kernel blocks."""

import pytest

from xpurt.errors import PlanningError
from xpurt.mapping import run_chains

US = 1000.0


@pytest.mark.parametrize("chains", [2, 3, 4])
def test_chains_overlap(chains: int) -> None:
    found = run_chains(chains, 8, US, US, [US], copy_us=US / 20)
    assert found.speedup > 1.6
    assert found.on_queue == 1


def test_a_kernel_that_is_a_little_slower_is_worth_it() -> None:
    assert run_chains(2, 8, US, 1.2 * US, [US], copy_us=US / 20).speedup > 1.5


@pytest.mark.parametrize("others_us", [[US], [2 * US, 2 * US], [50 * US]])
@pytest.mark.parametrize("kernel_us", [0.8 * US, 1.1 * US, 3 * US])
def test_a_single_chain_loses_nothing(kernel_us: float, others_us: list[float]) -> None:
    found = run_chains(1, 8, US, kernel_us, others_us, copy_us=US / 20)
    assert found.speedup >= 0.999
    assert found.on_queue == (kernel_us < US)


@pytest.mark.parametrize("copy_us", [0.0, US / 10, US, 10 * US])
@pytest.mark.parametrize("other_us", [US / 2, US, 3 * US, 20 * US])
@pytest.mark.parametrize("kernel_us", [0.8 * US, US, 1.3 * US, 2 * US])
@pytest.mark.parametrize("chains", [1, 2, 3, 5])
def test_the_mix_is_no_slower_than_the_best_device(
    chains: int, kernel_us: float, other_us: float, copy_us: float
) -> None:
    found = run_chains(chains, 6, US, kernel_us, [other_us], copy_us=copy_us)
    assert found.speedup >= 0.98


def test_more_devices_take_more_chains() -> None:
    two = run_chains(8, 8, US, US, [US], copy_us=US / 20)
    four = run_chains(8, 8, US, US, [US] * 3, copy_us=US / 20)
    assert four.speedup > 1.6 * two.speedup


def test_bad_programs_are_refused() -> None:
    with pytest.raises(PlanningError, match="wants a chain"):
        run_chains(0, 8, US, US, [US])
    with pytest.raises(PlanningError, match="wants a chain"):
        run_chains(2, 8, US, US, [])
    with pytest.raises(PlanningError, match="positive"):
        run_chains(2, 8, US, 0, [US])
