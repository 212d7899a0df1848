"""Convolutions of 3x3 by Winograd's algorithm, in graphs with frozen parameters."""

import copy
from typing import Any

import pytest
import torch
from test_fused_convolutions import compiled_code, has_primitives
from torch import Tensor, nn
from torch.nn import functional as F
from torch.testing import assert_close

from xpurt.compiler.frozen import winograd
from xpurt.compiler.frozen.winograd import Layer

pytestmark = [
    pytest.mark.filterwarnings("error:torch.compile runs"),
    pytest.mark.mappings("CPU"),
]


def formats_of_images(device: torch.device) -> list[int]:
    """Of the input and the result of a convolution of 16 channels."""
    x, weight = torch.ones(1, 16, 8, 8).to(device), torch.ones(16, 16, 3, 3).to(device)
    sizes, ones = [16, 16, 3, 3], [1, 1]
    after = ("none", 0, 0, 0, 0)
    found: list[int] = torch.ops.xpurt.convolution_formats(
        x, weight, None, None, sizes, ones, ones, ones, 1, *after
    )
    return list(found)


@pytest.fixture
def blocks(xpu: torch.device) -> torch.device:
    """A device whose images are in blocks of 16 channels."""
    if has_primitives(xpu) and formats_of_images(xpu) == [winograd.BLOCK] * 2:
        return xpu
    pytest.skip("convolutions are in another format here")


class Residual(nn.Module):
    """The second convolution is added to another value, and the third one has neither a
    bias nor an activation."""

    def __init__(self, channels: int = 64) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, 64, 3, padding=1)
        self.second = nn.Conv2d(64, 64, 3, padding=1)
        self.third = nn.Conv2d(64, 48, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.first(x))
        return self.third(F.relu(self.second(y) + y))


def used(code: str) -> int:
    return code.count("= torch.ops.xpurt.winograd_convolution")


@pytest.mark.parametrize(
    "sizes", [(1, 64, 33, 30), (5, 64, 20, 24)], ids=["cut tiles", "two parts"]
)
def test_results(blocks: torch.device, sizes: tuple[int, ...]) -> None:
    model, x = Residual().eval(), torch.randn(sizes)
    expected = copy.deepcopy(model).double()(x.double()).float()
    model = model.to(blocks)
    found, code, _ = compiled_code(model, x.to(blocks))
    assert used(code) == 3
    assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-5)
    assert found.stride() == model(x.to(blocks)).stride()


def test_relu_keeps_nan(blocks: torch.device) -> None:
    x = torch.randn(1, 64, 32, 32)
    x[0, 0, 5, 5] = torch.nan
    model = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()).eval()
    found, code, _ = compiled_code(model.to(blocks), x.to(blocks))
    assert used(code) == 1
    assert bool(found[0, :, 4:7, 4:7].isnan().all())


def test_direct_convolutions_if_asked(blocks: torch.device) -> None:
    model, x = Residual().eval().to(blocks), torch.randn(1, 64, 32, 32).to(blocks)
    conv: Any = torch.backends.mkldnn.conv  # type: ignore[attr-defined]
    before = conv.fp32_precision
    conv.fp32_precision = "ieee"
    try:
        _, code, calls = compiled_code(model, x)
    finally:
        conv.fp32_precision = before
    assert used(code) == 0
    assert calls == 3


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "convolution",
    [
        nn.Conv2d(64, 64, 3, padding=1, stride=2),
        nn.Conv2d(64, 64, 3, padding=2, dilation=2),
        nn.Conv2d(64, 64, 3),
        nn.Conv2d(64, 64, 3, padding=1, groups=2),
        nn.Conv2d(64, 64, 3, padding=1, dtype=torch.bfloat16),
        nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.Tanh()),
    ],
    ids=["stride", "dilation", "padding", "groups", "bfloat16", "tanh"],
)
def test_other_convolutions_are_direct(
    blocks: torch.device, convolution: nn.Module
) -> None:
    # A copy: the parameter of the test outlives the mapping.
    convolution = copy.deepcopy(convolution).eval().to(blocks)
    dtype = next(convolution.parameters()).dtype
    x = torch.randn(2, 64, 48, 48).to(blocks, dtype)
    _, code, calls = compiled_code(convolution, x)
    assert used(code) == 0
    assert calls == 1


@pytest.mark.parametrize(
    ("layer", "pays"),
    [
        (Layer(16, 64, 64, 32, 32), True),
        (Layer(16, 512, 512, 4, 4), True),
        (Layer(2, 512, 512, 7, 7), False),  # the weight is the most that is moved
        (Layer(1, 16, 16, 8, 8), False),  # too short
        (Layer(16, 16, 16, 32, 32), False),  # few products per number moved
    ],
)
def test_where_it_pays(layer: Layer, pays: bool) -> None:
    assert layer.pays == pays


def test_parts_have_all_tiles() -> None:
    for images in range(1, 200, 7):
        layer = Layer(images, 64, 64, 30, 17)
        parts = -(-layer.tiles // layer.part)
        assert (parts - 1) * layer.part < layer.tiles <= parts * layer.part
