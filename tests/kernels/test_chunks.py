"""Tensors that are joined chunk by chunk, as FSDP2 does with gradients."""

import pytest
import torch

import xpurt


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_chunks_are_joined_without_the_host(
    dtype: torch.dtype, xpu: torch.device
) -> None:
    """Also into a buffer of a wider type than the gradients'."""
    given = [torch.rand(size, dtype=dtype) for size in ((5, 3), (4,), (2, 2, 2))]
    expected = torch._chunk_cat(given, 0, 2).float()
    on_xpu = [each.to(xpu) for each in given]
    out = torch.empty_like(expected, device=xpu)
    xpurt.op_report(reset=True)
    torch._chunk_cat(on_xpu, 0, 2, out=out)
    tiers = {row.tier for row in xpurt.op_report().rows}
    assert tiers
    assert "copy" not in tiers
    assert torch.equal(out.cpu(), expected)
