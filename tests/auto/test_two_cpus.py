"""AUTO over two parts of the CPU device: both have oneDNN's primitives."""

import os

import pytest
from own_process import output

GRADIENTS = """
    import torch, xpurt
    from torch.nn import functional as F
    from xpurt import _C

    xpurt.set_xpu_mapping("AUTO", devices="cpu", partition=2)
    torch.manual_seed(0)
    operands = torch.randn(8, 16, 12, 12), torch.randn(24, 16, 3, 3), torch.randn(24)

    def gradients(device):
        leaves = [each.detach().to(device).requires_grad_() for each in operands]
        result = F.conv2d(*leaves, padding=1)
        weights = torch.linspace(-1, 1, result.numel()).reshape(result.shape).to(device)
        before = _C.testing.shards_run(0)
        found = torch.autograd.grad(result, leaves, weights)
        shards = [b - a for a, b in zip(before, _C.testing.shards_run(0))]
        return [each.cpu() for each in found], shards

    expected, _ = gradients("cpu")
    _C.testing.set_split_proportions([0.5, 0.5])
    with xpurt.kernel_policy("sycl"):
        found, shards = gradients("xpu")
    for mine, theirs in zip(found, expected):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-3)
    print(min(shards) > 0)
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a core for each part")
def test_the_gradients_of_a_convolution_are_divided() -> None:
    assert output(GRADIENTS, XPURT_VIRTUAL_GPU="off") == "True"
