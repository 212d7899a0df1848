"""Quantized convolutions with the addition and the ReLU that follow as one op: the same
bits, and which calls are no such case."""

from collections.abc import Callable

import pytest
import torch
from pattern_cases import fused, values
from torch import Tensor, nn
from torch.nn import functional as F

import xpurt

pytestmark = pytest.mark.usefixtures("in_optimized_form")

NAME = "int8 convolution + what follows"


def one() -> nn.Module:
    return nn.Conv2d(16, 16, 1)


def tiles() -> nn.Module:
    return nn.Conv2d(16, 16, 3, padding=1)


def groups() -> nn.Module:
    return nn.Conv2d(16, 16, 3, padding=1, groups=4)


class Block(nn.Module):
    def __init__(self, layer: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.layer, self.shortcut = layer(), layer()

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.layer(x) + x)


class InPlace(Block):
    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        y += self.shortcut(x)
        return F.relu(y, inplace=True)


class Addition(Block):
    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.layer(x)
        return y.tanh()


class FunctionRelu(Block):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).relu()


def images(device: str) -> Tensor:
    return torch.randn(12, 16, 8, 8).to(device).to(memory_format=torch.channels_last)


def quantized(model: nn.Module, x: Tensor, kind: str = "static") -> nn.Module:
    return xpurt.quantize(model.eval().to(x.device), kind, calibration=[x])


@pytest.mark.parametrize("layer", [one, tiles, groups])
@pytest.mark.parametrize("block", [Block, InPlace, Addition, FunctionRelu])
def test_the_values_are_those_of_the_layers(
    device: str, block: Callable[..., Block], layer: Callable[[], nn.Module]
) -> None:
    x = images(device)
    model = quantized(block(layer), x, "static" if layer is tiles else "dynamic")
    made = xpurt.optimize(model)
    wanted = values(model, x)
    assert values(made, x).equal(wanted)
    assert fused(made) == [NAME]
    assert ("layer", f"fused: {NAME}") in made.report.done


@pytest.mark.parametrize("axes", [1, 3])
def test_images_of_other_dimensions(device: str, axes: int) -> None:
    x = torch.randn(2, 6, *[7] * axes).to(device)
    layer = (nn.Conv1d, nn.Conv3d)[axes > 1]
    model = quantized(Block(lambda: layer(6, 6, 3, padding=1)), x)
    made = xpurt.optimize(model)
    assert values(made, x).equal(values(model, x))
    assert fused(made) == [NAME]


class Broadcast(Block):
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.layer(x) + x[:1, :, :1, :1])


class ReadTwice(Block):
    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layer(x)
        return torch.relu(y + x) * y


class WrittenBetween(Block):
    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        y: Tensor = self.layer(x)
        x.mul_(2)
        return torch.relu(y + x)


class Scaled(Block):
    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(torch.add(self.layer(x), x, alpha=2))


@pytest.mark.parametrize("block", [Broadcast, ReadTwice, WrittenBetween, Scaled])
def test_what_only_looks_like_it(device: str, block: Callable[..., Block]) -> None:
    x = images(device)
    model = quantized(block(one), x)
    made = xpurt.optimize(model)
    assert values(made, x).equal(values(model, x))
    assert fused(made) == []


def test_half_types_round_before_the_addition(device: str) -> None:
    x = images(device)
    model = quantized(Block(one), x)
    made = xpurt.optimize(model)
    assert values(made, x.half()).equal(values(model, x.half()))
    assert fused(made) == []
