"""Every row that computes, on all 65,536 values of the halves or on values at the edges
of the other types: see value_sweep.py for what is right. The page docs/measured/accuracy.md has
the bounds."""

from collections.abc import Iterator

import pytest
import torch

from kernels.value_sweep import Sweep, found_by, is_quick, sweeps

SWEEPS = [
    pytest.param(each, id=str(each), marks=() if is_quick(each) else pytest.mark.slow)
    for each in sweeps()
]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads of PyTorch's that wait for each other take longer than these values."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.one_in(4)
@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("sweep", SWEEPS)
def test_values(sweep: Sweep, xpu: torch.device) -> None:
    found = found_by(sweep, xpu)
    if found is None:
        pytest.skip(f"PyTorch has no kernel of {sweep.name} for {sweep.dtype}")
    assert not found.wrong.any(), f"{sweep}: {found}"
