"""Layers that PyTorch computes by one op, under autocast: dtypes and values as on the
CPU, and nothing raised that is not raised there.

A layer asks whether autocast is enabled, without naming a device. That is CUDA's until
PyTorch 2.13, and then that of the accelerator: the layer is several ops there, the last
of which, layer_norm, is computed in float32."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import xpurt

Call = Callable[[str, torch.dtype], Tensor]

WIDTH, HEADS = 16, 2


def given(kind: str, dtype: torch.dtype) -> Tensor:
    seed = torch.Generator().manual_seed(1)
    return torch.rand(2, 5, WIDTH, generator=seed).to(kind, dtype)


def encoder_layer(kind: str) -> nn.Module:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, batch_first=True)
    return layer.eval().to(kind)


def layer(kind: str, dtype: torch.dtype) -> Tensor:
    result: Tensor = encoder_layer(kind)(given(kind, dtype))
    return result


def masked_layer(kind: str, dtype: torch.dtype) -> Tensor:
    mask = torch.ones(5, 5, dtype=torch.bool).triu(1).to(kind)
    result: Tensor = encoder_layer(kind)(given(kind, dtype), src_mask=mask)
    return result


def layers(kind: str, dtype: torch.dtype) -> Tensor:
    model = nn.TransformerEncoder(encoder_layer(kind), 2, enable_nested_tensor=False)
    result: Tensor = model.eval()(given(kind, dtype))
    return result


def attention(kind: str, dtype: torch.dtype) -> Tensor:
    torch.manual_seed(0)
    module = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval().to(kind)
    x = given(kind, dtype)
    result: Tensor = module(x, x, x, need_weights=False)[0]
    return result


def native_attention(kind: str, dtype: torch.dtype) -> Tensor:
    torch.manual_seed(0)
    module = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).to(kind)
    x, out = given(kind, dtype), module.out_proj
    parameters = module.in_proj_weight, module.in_proj_bias, out.weight, out.bias
    result: Tensor = torch._native_multi_head_attention(
        x, x, x, WIDTH, HEADS, *parameters
    )[0]
    return result


def dtype_of_layers(lower: torch.dtype) -> torch.dtype:
    """That of an encoder layer's result on xpu."""
    with torch.autocast("xpu", lower):
        return torch.float32 if torch.is_autocast_enabled() else lower


@pytest.mark.parametrize("lower", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str
)
@pytest.mark.parametrize(
    "call",
    [layer, masked_layer, layers, attention, native_attention],
    ids=lambda call: call.__name__,
)
@pytest.mark.usefixtures("xpu")
def test_dtype_and_values_are_those_of_the_cpu(
    call: Call, dtype: torch.dtype, lower: torch.dtype
) -> None:
    with torch.no_grad():
        exact = call("cpu", torch.float32)
        with torch.autocast("cpu", lower):
            expected = call("cpu", dtype)
        with torch.autocast("xpu", lower):
            found = call("xpu", dtype)
    assert expected.dtype == lower
    is_one_op = call in (attention, native_attention)
    assert found.dtype == (lower if is_one_op else dtype_of_layers(lower))
    torch.testing.assert_close(found.float().cpu(), exact, rtol=0.05, atol=0.05)


@pytest.mark.usefixtures("xpu")
def test_nested_tensors() -> None:
    """On the CPU PyTorch raises for these."""
    model = nn.TransformerEncoder(encoder_layer("xpu"), 2).eval()
    x = given("xpu", torch.float32)
    hidden = torch.tensor([[False] * 5, [False] * 3 + [True] * 2]).to("xpu")
    with torch.no_grad():
        expected = model(x, src_key_padding_mask=hidden)
        with torch.autocast("xpu", torch.bfloat16):
            found = model(x, src_key_padding_mask=hidden)
    assert found.dtype == dtype_of_layers(torch.bfloat16)
    # Several ops compute the hidden rows, too.
    torch.testing.assert_close(
        found.float()[~hidden], expected[~hidden], rtol=0.05, atol=0.05
    )


@pytest.mark.usefixtures("xpu")
def test_without_autocast_of_xpu_nothing_is_cast() -> None:
    with torch.no_grad():
        expected = layer("cpu", torch.float32)
        with torch.autocast("xpu", torch.bfloat16, enabled=False):
            found = layer("xpu", torch.float32)
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)
    with torch.no_grad(), torch.autocast("xpu", torch.bfloat16):
        assert encoder_layer("cpu")(given("cpu", torch.float32)).dtype == torch.float32


@pytest.mark.usefixtures("xpu")
@pytest.mark.parametrize("call", [layer, native_attention], ids=lambda c: c.__name__)
def test_autocast_of_the_cpu_leaves_xpu_alone(call: Call) -> None:
    """PyTorch's kernels for the CPU compute these ops, and call others."""
    with torch.no_grad():
        expected = call("xpu", torch.float32)
        with torch.autocast("cpu", torch.bfloat16):
            found = call("xpu", torch.float32)
    assert found.dtype == torch.float32
    assert torch.equal(found, expected)


@pytest.mark.usefixtures("xpu")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_compiled(dtype: torch.dtype) -> None:
    model, x = encoder_layer("xpu"), given("xpu", dtype)
    with torch.no_grad(), torch.autocast("xpu", torch.bfloat16):
        expected = model(x)
        with xpurt.kernel_policy("sycl"):
            found = torch.compile(model)(x)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=0.05, atol=0.05)
