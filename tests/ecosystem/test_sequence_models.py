"""Cells and attention on xpu."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from xpurt.testing.oracle import agree


def test_cells(xpu: torch.device) -> None:
    for kind in (nn.LSTMCell, nn.GRUCell, nn.RNNCell):
        cell = kind(4, 5)
        expected = cell(torch.ones(2, 4))
        found = cell.to(xpu)(torch.ones(2, 4, device=xpu))
        torch.testing.assert_close(
            [t.cpu() for t in found] if kind is nn.LSTMCell else found.cpu(),
            list(expected) if kind is nn.LSTMCell else expected,
        )


@pytest.mark.parametrize("masked", ["none", "causal", "bool", "float"])
@pytest.mark.parametrize("backend", ["chosen", "math"])
def test_attention(masked: str, backend: str, xpu: torch.device) -> None:
    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        mask = None
        if masked == "bool":
            mask = torch.ones(6, 6, dtype=torch.bool, device=q.device).tril(2)
        elif masked == "float":
            mask = torch.arange(36.0, device=q.device).reshape(6, 6) / 36
        causal = masked == "causal"
        if backend == "math":
            with sdpa_kernel(SDPBackend.MATH):
                return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
        return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)

    parts = [torch.randn(2, 3, 6, 8, requires_grad=True) for _ in range(3)]
    agree(run, *parts, device=xpu, strides=False, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_a_transformer_layer(training: bool, xpu: torch.device) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    layer.train(training)
    x = torch.randn(2, 5, 16)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.set_grad_enabled(training):
        expected = layer(x, src_key_padding_mask=padding)
        found = layer.to(xpu)(x.to(xpu), src_key_padding_mask=padding.to(xpu))
    # The fast path's values at padded positions are undefined.
    found, kept = found.detach().cpu(), ~padding
    torch.testing.assert_close(
        found[kept], expected.detach()[kept], rtol=1e-4, atol=1e-5
    )
