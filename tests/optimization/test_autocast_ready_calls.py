"""Calls of a block that need no Python, after the first one like them."""

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest
import torch
from autocast_networks import images, with_layout
from torch import Tensor, nn
from torch.nn import functional as F
from torch.testing import assert_close

import xpurt
from xpurt.optimization.autocast.layout_ops import LAYOUT_OPS

Call = Callable[[Tensor, nn.Conv2d], Any]


@pytest.fixture
def calls() -> Iterator[list[str]]:
    """The ops that Python computed."""
    found: list[str] = []

    def counted(name: str) -> Callable[..., Any]:
        before = LAYOUT_OPS[name]

        def run(*arguments: Any) -> Any:
            found.append(name)
            return before(*arguments)

        return run

    with patch.dict(LAYOUT_OPS, {name: counted(name) for name in LAYOUT_OPS}):
        yield found


@pytest.mark.parametrize("channels", [3, 64])
def test_only_the_first_call_is_computed_in_python(
    device: str, channels: int, calls: list[str]
) -> None:
    layers = nn.Conv2d(channels, 64, 3), nn.ConvTranspose2d(64, 8, 3), nn.Linear(6, 5)
    model = nn.Sequential(*layers).to(device)
    x = torch.randn(2, channels, 6, 6, device=device)
    with torch.no_grad(), with_layout(device):
        first = [model(x) for _ in range(3)]
        assert calls == ["conv2d", "conv_transpose2d", "linear"]
        assert first[0].is_contiguous()
    assert first[0].equal(first[2])
    # Later blocks compare the weights with what they were.
    for _ in range(2):
        with torch.no_grad(), with_layout(device):
            assert model(x).equal(first[0])
    assert len(calls) == 3


def test_trained_convolutions_need_no_python(device: str, calls: list[str]) -> None:
    layers = nn.Conv2d(3, 8, 3), nn.ConvTranspose2d(8, 8, 3), nn.Conv2d(8, 8, 1)
    model, found = nn.Sequential(*layers).to(device), []
    x = images(device=device).requires_grad_()
    for block in (with_layout(device), torch.autocast(device, torch.bfloat16)):
        with block:
            y = model(x)
        assert y.is_contiguous()
        grads = torch.autograd.grad(y.float().square().mean(), [x, *model.parameters()])
        assert grads[0].is_contiguous()
        found.append((y, *grads))
    assert_close(*found, rtol=0.02, atol=0.002)
    assert calls == []


def _in_place(x: Tensor, layer: nn.Conv2d) -> Any:
    layer.weight.mul_(2)
    return layer(x)


def _by_data(x: Tensor, layer: nn.Conv2d) -> Any:
    layer.weight.data.mul_(2)
    return layer(x)


def _other_memory(x: Tensor, layer: nn.Conv2d) -> Any:
    layer.weight.data = layer.weight.data * 2
    return layer(x)


def _other_order(x: Tensor, layer: nn.Conv2d) -> Any:
    layer.weight.data = layer.weight.data.transpose(2, 3)
    return layer(x)


def _bias(x: Tensor, layer: nn.Conv2d) -> Any:
    assert layer.bias is not None
    layer.bias.data.add_(9)
    return layer(x)


def _other_bias(x: Tensor, layer: nn.Conv2d) -> Any:
    return F.conv2d(x, layer.weight, torch.ones(8, device=x.device))


def _in_float16(x: Tensor, layer: nn.Conv2d) -> Any:
    with torch.autocast(x.device.type, torch.float16):
        return layer(x)


def _with_gradient(x: Tensor, layer: nn.Conv2d) -> Any:
    with torch.enable_grad():
        y = layer(x.clone().requires_grad_())
    assert y.requires_grad
    return y.detach()


def _forward_mode(x: Tensor, layer: nn.Conv2d) -> Any:
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        value, tangent = torch.autograd.forward_ad.unpack_dual(layer(dual))
        assert tangent is not None
        return value, tangent


CHANGES: dict[str, Call] = {
    "nothing": lambda x, layer: layer(x),
    "a write": _in_place,
    "a write by .data": _by_data,
    "other memory": _other_memory,
    "another order": _other_order,
    "a write to the bias": _bias,
    "another bias": _other_bias,
    "no bias": lambda x, layer: F.conv2d(x, layer.weight),
    "padding": lambda x, layer: F.conv2d(x, layer.weight, layer.bias, padding=1),
    "padding by name": lambda x, layer: F.conv2d(
        x, layer.weight, layer.bias, padding="same"
    ),
    "stride": lambda x, layer: F.conv2d(x, layer.weight, layer.bias, stride=2),
    "smaller images": lambda x, layer: layer(x[:, :, 2:]),
    "one image": lambda x, layer: layer(x[0]),
    "another type": lambda x, layer: layer(x.to(torch.bfloat16)),
    "channels last": lambda x, layer: layer(x.to(memory_format=torch.channels_last)),
    "float16 within": _in_float16,
    "a gradient": _with_gradient,
    "forward mode": _forward_mode,
    "vmap": lambda x, layer: torch.vmap(layer)(x),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_call_that_differs_is_computed_anew(device: str, change: str) -> None:
    torch.manual_seed(0)
    layer = nn.Conv2d(3, 8, 3).to(device)
    x = images(device=device)
    expected = CHANGES[change]
    with torch.no_grad(), with_layout(device):
        layer(x)
        layer(x)
        found = expected(x, layer)
    if change.startswith(("a write", "other memory", "another order")):
        expected = CHANGES["nothing"]
    with torch.no_grad(), torch.autocast(device, torch.bfloat16):
        wanted = expected(x, layer)
    assert_close(found, wanted, rtol=0.02, atol=0.02)
    for one, other in zip(_tensors(found), _tensors(wanted), strict=True):
        assert one.stride() == other.stride()


def test_a_block_in_int8_within_one_with_a_layout(device: str) -> None:
    layer, x = nn.Conv2d(3, 8, 3).to(device), images(device=device)
    mkldnn: torch.layout = torch._mkldnn  # type: ignore[attr-defined]
    with torch.no_grad(), xpurt.autocast(device, torch.int8, layout=mkldnn):
        expected = layer(x)
    with torch.no_grad(), xpurt.autocast(device, torch.float32, layout=mkldnn):
        exact = layer(x)
        with xpurt.autocast(device, torch.int8, layout=mkldnn):
            found = layer(x)
    assert found.equal(expected)
    assert not found.equal(exact)


def _tensors(found: Any) -> tuple[Tensor, ...]:
    return found if isinstance(found, tuple) else (found,)


def test_nothing_is_kept_without_the_cache(device: str, calls: list[str]) -> None:
    layer, x = nn.Conv2d(3, 8, 3).to(device), images(device=device)
    block = xpurt.autocast(
        device, torch.bfloat16, cache_enabled=False, layout=torch.mkldnn
    )
    with torch.no_grad(), block:
        for _ in range(3):
            layer(x)
    assert len(calls) == 3


def test_a_weight_that_is_made_anew_is_not_kept(device: str, calls: list[str]) -> None:
    weight, x = torch.randn(8, 3, 3, 3, device=device), images(device=device)
    weight.requires_grad_()
    with with_layout(device):
        made = weight * 2
        with torch.no_grad():
            for _ in range(3):
                F.conv2d(x, made)
    assert len(calls) == 3
