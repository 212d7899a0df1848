"""Convolutions: their windows, sizes and formats, and a batch norm as a part of one."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import torch
from torch import Tensor

# Formats of xpurt::fused_convolution. A number above these: blocks of so many channels.
CONTIGUOUS: Final = 0
CHANNELS_LAST: Final = 1

_FORMATS: Final = {4: torch.channels_last, 5: torch.channels_last_3d}


def channels_last(dimensions: int) -> torch.memory_format | None:
    """The format of images with this many dimensions; None if they have none."""
    return _FORMATS.get(dimensions)


def is_channels_last(tensor: Tensor) -> bool:
    """Whether it is, and not contiguous at the same time."""
    wanted = _FORMATS.get(tensor.dim())
    return (
        wanted is not None
        and not tensor.is_contiguous()
        and tensor.is_contiguous(memory_format=wanted)
    )


def by_axis(given: int | Sequence[int], axes: int) -> list[int]:
    """A stride, padding or dilation as PyTorch takes it, with a number per axis."""
    numbers = [given] if isinstance(given, int) else list(given)
    return numbers * (axes // len(numbers)) if numbers else []


def output_sizes(
    images: Sequence[int],
    weight: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> list[int]:
    """Sizes of images (batch, channels, ...) and of a weight (out, in / groups, ...); a
    number per axis in the others."""
    axes = zip(images[2:], weight[2:], stride, padding, dilation, strict=True)
    return [
        images[0],
        weight[0],
        *(
            (size + 2 * zeros - spread * (window - 1) - 1) // step + 1
            for size, window, step, zeros, spread in axes
        ),
    ]


class Geometry(NamedTuple):
    """As the arguments of torch.convolution, a number per spatial dimension."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1


class BatchNorm(NamedTuple):
    """A batch norm by its running statistics, each (channels)."""

    mean: Tensor
    variance: Tensor
    weight: Tensor | None
    bias: Tensor | None
    eps: float

    def scale(self, dtype: torch.dtype) -> Tensor:
        """The factor of each channel."""
        scale = torch.rsqrt(self.variance.to(dtype) + self.eps)
        return scale if self.weight is None else scale * self.weight


def folded(
    weight: Tensor, bias: Tensor | None, norm: BatchNorm
) -> tuple[Tensor, Tensor]:
    """The weight and the bias of the convolution that includes a norm behind it: with the
    scale s they are s * weight, and (bias - mean) * s + the norm's bias (Jacob et al.,
    Quantization and training of neural networks for efficient integer-arithmetic-only
    inference, 2018). In float32, or float64 of such a weight: round them once."""
    dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
    scale = norm.scale(dtype)
    shift = (-norm.mean if bias is None else bias.to(dtype) - norm.mean) * scale
    if norm.bias is not None:
        shift = shift + norm.bias
    return weight.to(dtype) * scale.view(-1, *[1] * (weight.dim() - 1)), shift
