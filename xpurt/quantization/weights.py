"""Weights in 8 and in 4 bits."""

import torch


def int8_per_channel(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The weight as int8 in -127..127, and its scales: float32, one for each output
    channel, which is dimension 0. The largest magnitude of a channel becomes 127.
    """
    values = weight.detach().float()
    largest = values.abs().flatten(1).amax(1)
    scale = torch.where(largest > 0, largest / 127, 1.0)
    shape = (-1, *[1] * (weight.dim() - 1))
    return (values / scale.view(shape)).round().to(torch.int8), scale


def int4_in_groups(
    weight: torch.Tensor, group_size: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A weight `(out, in)` in 4 bits: bytes `(out, in / 2)`, and the scales and minima,
    `(out, in / group_size)` in float32. An element is value * scale + minimum.

    Byte j of a group has the elements j and j + group_size / 2, the first one in its
    low bits: the two halves are then unpacked to vectors without a shuffle.
    """
    groups = weight.detach().float().reshape(len(weight), -1, group_size)
    minimum = groups.amin(2)
    scale = (groups.amax(2) - minimum) / 15
    steps = torch.where(scale > 0, scale, 1.0)
    values = (groups - minimum.unsqueeze(2)) / steps.unsqueeze(2)
    low, high = values.round().clamp(0, 15).to(torch.uint8).chunk(2, dim=2)
    return (low | high << 4).flatten(1), scale, minimum
