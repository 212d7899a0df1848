"""Each activation after each kind of layer, with an addition before it and without, in each
layout: what `xpurt.optimize` puts in place of a chain, called as it calls it."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from xpurt.functional.activations import FUNCTIONS, Activation
from xpurt.functional.convolutions import BatchNorm, Geometry
from xpurt.optimization.comparison import difference_of
from xpurt.optimization.fused_convolution import convolution
from xpurt.optimization.fused_linear import linear

CPU = torch.device("cpu")
NUMBERS = (-0.4, 0.7)  # a slope, or bounds
DTYPES = (torch.float32, torch.bfloat16)
CHANNELS = 16
EPS = 1e-5
LAYOUTS = (
    (1, torch.contiguous_format),
    (2, torch.contiguous_format),
    (2, torch.channels_last),
    (3, torch.contiguous_format),
    (3, torch.channels_last_3d),
)


@dataclass(frozen=True)
class Chain:
    """A layer, an addition and an activation. Its tensors are in float32, on the CPU."""

    x: Tensor
    weight: Tensor
    bias: Tensor
    other: Tensor | None
    after: Activation
    geometry: Geometry | None = None  # of a convolution
    mean: Tensor | None = None  # of the norm that follows one, as the variance
    variance: Tensor | None = None

    def moved(self, device: torch.device, dtype: torch.dtype) -> "Chain":
        changed: dict[str, Any] = {
            name: each.to(device, dtype)
            for name, each in vars(self).items()
            if isinstance(each, Tensor)
        }
        for name in ("weight", "bias"):  # those of parameters alone are packed
            changed[name] = nn.Parameter(changed[name], requires_grad=False)
        return replace(self, **changed)

    def fused(self) -> Tensor:
        layer = self.x, self.weight, self.bias
        if self.geometry is None:
            return linear(*layer, self.other, self.after)
        assert self.mean is not None
        assert self.variance is not None
        norm = BatchNorm(self.mean, self.variance, None, None, EPS)
        return convolution(*layer, self.geometry, norm, self.other, self.after)

    def as_written(self) -> Tensor:
        layer = self.x, self.weight, self.bias
        if self.geometry is None:
            y = F.linear(*layer)
        else:
            op: Any = (F.conv1d, F.conv2d, F.conv3d)[self.x.dim() - 3]
            y = op(*layer, *self.geometry)
            y = F.batch_norm(y, self.mean, self.variance, None, None, False, 0.0, EPS)
        return self.after(y if self.other is None else y + self.other)


def convolutions(after: Activation) -> Iterator[tuple[str, Chain]]:
    cases = itertools.product(LAYOUTS, (1, 4, CHANNELS), (False, True))
    for (dims, layout), groups, adds in cases:
        x, other = torch.randn(2, 2, CHANNELS, *[6] * dims)
        weight = torch.randn(CHANNELS, CHANNELS // groups, *[3] * dims) / 8
        mean, bias = torch.randn(2, CHANNELS)
        ones = (1,) * dims
        yield (
            f"{dims} dimensions, {layout}, {groups} groups, addition: {adds}",
            Chain(
                x.to(memory_format=layout),
                weight,
                bias,
                other.to(memory_format=layout) if adds else None,
                after,
                Geometry(ones, ones, ones, groups),
                mean,
                torch.rand(CHANNELS) + 0.5,
            ),
        )


def linear_layers(after: Activation) -> Iterator[tuple[str, Chain]]:
    for rows, adds in itertools.product((1, 7), (False, True)):
        x, weight = torch.randn(rows, 24), torch.randn(40, 24) / 5
        other = torch.randn(rows, 40) if adds else None
        name = f"{rows} rows, addition: {adds}"
        yield name, Chain(x, weight, torch.randn(40), other, after)


def wrong(name: str, device: torch.device) -> dict[str, str]:
    after = Activation(name, *NUMBERS[: FUNCTIONS[name].numbers])
    found = {}
    for case, chain in itertools.chain(convolutions(after), linear_layers(after)):
        exact = chain.moved(CPU, torch.float64).as_written()
        for dtype in DTYPES:
            here = chain.moved(device, dtype)
            why = difference_of(here.as_written().cpu(), here.fused().cpu(), exact)
            if why is not None:
                found[f"{case}, {dtype}"] = why
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
@torch.no_grad()
def test_on_cpu_tensors(name: str) -> None:
    assert wrong(name, CPU) == {}


@pytest.mark.parametrize("name", FUNCTIONS)
@torch.no_grad()
def test_on_xpu(name: str, xpu: torch.device) -> None:
    assert wrong(name, xpu) == {}
