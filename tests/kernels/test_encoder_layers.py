"""Layers with attention in evaluation, and the nested tensors of encoders."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

import xpurt
from kernels.kernel_forced import ON_THE_QUEUE, all_tiers
from xpurt import _C

pytestmark = pytest.mark.filterwarnings(
    "ignore:The PyTorch API of nested tensors", "ignore:enable_nested_tensor"
)


def encoder(norm_first: bool, activation: str) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(
        16, 2, 32, norm_first=norm_first, activation=activation, batch_first=True
    )
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first).eval()


def masks(kind: str) -> dict[str, Tensor]:
    """True is what is left out. Padding at the end makes the batch a nested tensor."""
    at_end = torch.arange(7) >= torch.tensor([7, 3, 1, 6]).unsqueeze(1)
    if kind == "padding at the end":
        return {"src_key_padding_mask": at_end}
    if kind == "padding in between":
        return {"src_key_padding_mask": at_end.flip(1)}
    if kind == "causal":
        return {"mask": torch.ones(7, 7).triu(1).bool()}
    return {}


@torch.no_grad()
@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.parametrize(
    "kind", ["", "padding at the end", "padding in between", "causal"]
)
@pytest.mark.parametrize(
    ("norm_first", "activation"), [(False, "relu"), (True, "gelu")]
)
def test_encoder(
    norm_first: bool, activation: str, kind: str, xpu: torch.device
) -> None:
    model, x = encoder(norm_first, activation), torch.randn(4, 7, 16)
    expected = model(x, **masks(kind))
    model, given = (
        model.to(xpu),
        {key: mask.to(xpu) for key, mask in masks(kind).items()},
    )
    x = x.to(xpu)
    torch.xpu.synchronize()
    _C.reset_op_report()
    with xpurt.kernel_policy("sycl"):
        found = model(x, **given)
    torch.xpu.synchronize()
    assert all_tiers() <= ON_THE_QUEUE, _C.op_report()
    assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-5)


@torch.no_grad()
@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("kind", [0, 1, 2, None])
def test_attention(kind: int | None, need_weights: bool, xpu: torch.device) -> None:
    shapes = {0: (5, 5), 1: (2, 5), 2: (2, 4, 5, 5)}
    mask = None if kind is None else torch.rand(shapes[kind]) < 0.3
    operands = [*torch.randn(3, 2, 5, 8), torch.randn(24, 8), torch.randn(24)]
    operands += [torch.randn(8, 8), torch.randn(8)]

    def call(device: torch.device) -> tuple[Tensor, Tensor]:
        q, k, v, *weights = (each.to(device) for each in operands)
        return torch._native_multi_head_attention(
            *(q, k, v, 8, 4, *weights, None if mask is None else mask.to(device)),
            *(need_weights, True, kind),
        )

    expected = call(torch.device("cpu"))
    with xpurt.kernel_policy("sycl"):
        found = call(xpu)
    assert (found[1] is None) == (expected[1] is None)
    for ours, theirs in zip(found[: 1 + need_weights], expected, strict=False):
        assert_close(ours.cpu(), theirs, rtol=1e-5, atol=1e-5, equal_nan=True)


@pytest.mark.mappings("CPU", "GPU")
def test_padding_of_nested_tensors(xpu: torch.device) -> None:
    nested = torch.nested.nested_tensor([torch.randn(3, 4), torch.randn(2, 4)])
    other = torch.nested.nested_tensor([torch.randn(3, 4), torch.randn(2, 5)])
    for tensor in (nested, other):
        for size in (None, (3, 5, 6)):
            with xpurt.kernel_policy("sycl"):
                found = tensor.to(xpu).to_padded_tensor(1.5, size)
            assert torch.equal(found.cpu(), tensor.to_padded_tensor(1.5, size))
