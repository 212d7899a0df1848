"""Every row of complex numbers on values at the edges: see complex_values.py."""

from collections.abc import Iterator

import pytest
import torch

from kernels.complex_values import HAS_WIDER, ComplexSweep, found_by, sweeps


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.one_in(2)
@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("sweep", sweeps(), ids=str)
def test_values(sweep: ComplexSweep, xpu: torch.device) -> None:
    if sweep.dtype == torch.complex128 and not HAS_WIDER:
        pytest.skip("NumPy has no complex type here that is wider than complex128")
    found = found_by(sweep, xpu)
    assert not found.wrong.any(), f"{sweep}: {found}"
