"""Tests of GPU code that run on a machine without a GPU.

XPURT_VIRTUAL_GPU=strict pytest --xpu-mapping GPU --xpu-required
"""

import torch
from layer import ScaledAttention

from xpurt.testing import agree


def test_the_layer_computes_on_a_gpu_what_it_computes_on_the_cpu(xpu) -> None:
    assert torch.xpu.get_device_properties(xpu).type == "gpu"
    torch.manual_seed(0)
    layer = ScaledAttention(16)
    weights = dict(layer.named_parameters())
    x = torch.randn(2, 8, 16, requires_grad=True)

    def call(weights, x):
        return torch.func.functional_call(layer, weights, x)

    # Compares values, dtypes, shapes, strides and all gradients, on copies of the arguments.
    agree(call, weights, x, device=xpu)


def test_a_step_of_training_lowers_the_loss(xpu) -> None:
    torch.manual_seed(0)
    layer = ScaledAttention(16).to(xpu)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    x = torch.randn(2, 8, 16, device=xpu)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        loss = (layer(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[1] < losses[0]
