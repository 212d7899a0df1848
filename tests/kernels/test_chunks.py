"""Tensors that are joined chunk by chunk, as FSDP2 does with gradients."""

import torch

import xpurt


def test_chunks_are_joined_without_the_host(xpu: torch.device) -> None:
    given = [torch.rand(size) for size in ((5, 3), (4,), (2, 2, 2))]
    expected = torch._chunk_cat(given, 0, 2)
    on_xpu = [each.to(xpu) for each in given]
    out = torch.empty_like(expected, device=xpu)
    xpurt.op_report(reset=True)
    torch._chunk_cat(on_xpu, 0, 2, out=out)
    assert all(row.tier != "copy" for row in xpurt.op_report().rows)
    assert torch.equal(out.cpu(), expected)
