"""The median along a dimension of an expanded tensor, which the CPU gets wrong."""

import pytest
import torch


@pytest.mark.parametrize("op", [torch.median, torch.nanmedian])
@pytest.mark.parametrize("shape", [(5,), (4, 5)])
def test_of_an_expanded_tensor(op, shape: tuple[int, ...], xpu: torch.device) -> None:
    for _ in range(20):
        x = torch.randn(1, device=xpu).expand(shape)
        values, indices = op(x, 0)
        assert (values == x[0]).all()
        assert (indices >= 0).all()
        assert (indices < shape[0]).all()
