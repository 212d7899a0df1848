"""Convolutions of any number of dimensions, without oneDNN.

They are computed by matrix products. The windows of the input are a view that overlaps
itself; a copy of it is the matrix of columns (Chellapilla, Puri and Simard, 2006). For
each group, the result is the weight times that matrix. The weight's gradient is the
gradient times the matrix transposed. The input's gradient is the weight transposed
times the gradient, folded back into an image. A transposed convolution is the input's
gradient of another convolution.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch._prims_common import (
    make_channels_last_strides_for,
    make_contiguous_strides_for,
    suggest_memory_format,
)

from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import FLOATING_ONLY

Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]

# The ops themselves. Called within the row's function, they run without the row.
without_row: Callable[..., Tensor] = torch.ops.aten.convolution_overrideable
without_row_backward: Callable[..., Gradients] = (
    torch.ops.aten.convolution_backward_overrideable
)

MOST_ELEMENTS = 1 << 26  # in a matrix of columns; larger batches are divided


@dataclass(frozen=True, slots=True)
class Windows:
    """The geometry of windows in an image; one number per dimension, in elements."""

    kernel: Sequence[int]
    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]
    groups: int

    def counts(self, image: Sequence[int]) -> list[int]:
        """Numbers of windows along each dimension of an image of these sizes."""
        return [
            (size + 2 * p - d * (k - 1) - 1) // s + 1
            for size, k, s, p, d in zip(
                image,
                self.kernel,
                self.stride,
                self.padding,
                self.dilation,
                strict=True,
            )
        ]

    def image(self, counts: Sequence[int], output_padding: Sequence[int]) -> list[int]:
        """Sizes of the image that has these numbers of windows, plus
        `output_padding`."""
        return [
            (count - 1) * s - 2 * p + d * (k - 1) + more + 1
            for count, k, s, p, d, more in zip(
                counts,
                self.kernel,
                self.stride,
                self.padding,
                self.dilation,
                output_padding,
                strict=True,
            )
        ]


def steps(
    counts: Sequence[int], apart: Sequence[int], strides: Sequence[int]
) -> list[int]:
    """The strides of every `apart`-th element. Those of one element can be any number,
    and may be too large for a stride."""
    return [
        distance * stride if count > 1 else 0
        for count, distance, stride in zip(counts, apart, strides, strict=True)
    ]


def columns(images: Tensor, windows: Windows) -> Tensor:
    """Images (N, C, ...) as a matrix (groups, C / groups * window, N * windows)."""
    if any(windows.padding):
        sides = [p for p in reversed(windows.padding) for _ in range(2)]
        padded = torch.constant_pad_nd(images, sides)
    else:
        padded = images
    batch, channels, *_ = images.shape
    counts = windows.counts(images.shape[2:])
    by_batch, by_channel, *by_element = padded.stride()
    in_group = channels // windows.groups
    view = padded.as_strided(
        (windows.groups, in_group, *windows.kernel, batch, *counts),
        (
            by_channel * in_group,
            by_channel,
            *steps(windows.kernel, windows.dilation, by_element),
            by_batch,
            *steps(counts, windows.stride, by_element),
        ),
    )
    return view.reshape(
        windows.groups, in_group * math.prod(windows.kernel), batch * math.prod(counts)
    )


def by_group(images: Tensor, groups: int) -> Tensor:
    """Images (N, C, ...) as a matrix (groups, C / groups, N * ...)."""
    channels = images.shape[1]
    return images.transpose(0, 1).reshape(groups, channels // groups, -1)


def from_groups(matrix: Tensor, sizes: Sequence[int]) -> Tensor:
    """The inverse of `by_group`: the matrix as images of these sizes."""
    batch, channels, *spatial = sizes
    return matrix.reshape(channels, batch, *spatial).transpose(0, 1)


def fold(matrix: Tensor, sizes: Sequence[int], windows: Windows) -> Tensor:
    """Images of the given sizes, whose elements are sums of elements of the columns:
    the transpose of `columns`."""
    batch, channels, *image = sizes
    counts = windows.counts(image)
    if len(image) == 1:
        wide = Windows(
            (1, *windows.kernel),
            (1, *windows.stride),
            (0, *windows.padding),
            (1, *windows.dilation),
            windows.groups,
        )
        return fold(matrix, (batch, channels, 1, *image), wide).squeeze(2)
    if len(image) == 2:
        rows = matrix.reshape(channels * math.prod(windows.kernel), batch, -1)
        images: Tensor = torch.ops.aten.col2im(
            rows.transpose(0, 1),
            image,
            windows.kernel,
            windows.dilation,
            windows.padding,
            windows.stride,
        )
        return images
    # By slices along the first dimension; each slice is an image of the other
    # dimensions.
    flat = Windows(
        windows.kernel[1:],
        windows.stride[1:],
        windows.padding[1:],
        windows.dilation[1:],
        windows.groups,
    )
    kernel, stride = windows.kernel[0], windows.stride[0]
    padding, dilation = windows.padding[0], windows.dilation[0]
    parts = matrix.reshape(
        channels, kernel, math.prod(flat.kernel), batch * counts[0], -1
    )
    deep = image[0] + 2 * padding
    result = matrix.new_zeros((batch, channels, deep, *image[1:]))
    for k in range(kernel):
        part = parts[:, k].reshape(windows.groups, -1, parts.shape[3] * parts.shape[4])
        slices = fold(part, (batch * counts[0], channels, *image[1:]), flat)
        slices = slices.reshape(batch, counts[0], channels, *image[1:]).transpose(1, 2)
        first = k * dilation
        last = first + (counts[0] - 1) * stride + 1
        result[:, :, first:last:stride] += slices
    return result[:, :, padding : padding + image[0]]


def shares(batch: int, elements: int) -> Iterator[slice]:
    """Parts of a batch for which the matrix of columns is not too large. `elements` is
    the number of elements of the columns of one image."""
    size = max(1, MOST_ELEMENTS // max(elements, 1))
    for first in range(0, batch, size):
        yield slice(first, min(first + size, batch))


def column_elements(image: Sequence[int], channels: int, windows: Windows) -> int:
    return channels * math.prod(windows.kernel) * math.prod(windows.counts(image))


def product(left: Tensor, right: Tensor, bias: Tensor | None) -> Tensor:
    """One matrix product per group; with a bias, a number is added to each row."""
    if bias is None:
        return torch.bmm(left, right)
    return torch.baddbmm(bias.reshape(left.shape[0], -1, 1), left, right)


def forward(
    images: Tensor, weight: Tensor, bias: Tensor | None, windows: Windows
) -> Tensor:
    """Images (N, C, ...) with weight (O, C / groups, ...): (N, O, ...)."""
    batch, channels, *image = images.shape
    left = weight.reshape(windows.groups, weight.shape[0] // windows.groups, -1)
    counts = windows.counts(image)
    parts = [
        from_groups(
            product(left, columns(images[share], windows), bias),
            (share.stop - share.start, weight.shape[0], *counts),
        )
        for share in shares(batch, column_elements(image, channels, windows))
    ]
    return together(parts, (batch, weight.shape[0], *counts), images)


def to_input(
    grad: Tensor, weight: Tensor, windows: Windows, image: Sequence[int]
) -> Tensor:
    """The gradient of images of these sizes. Sums over columns are taken in float."""
    if grad.dtype in (torch.float16, torch.bfloat16):
        return to_input(grad.float(), weight.float(), windows, image)
    batch = grad.shape[0]
    channels = weight.shape[1] * windows.groups
    left = weight.reshape(windows.groups, weight.shape[0] // windows.groups, -1)
    parts = [
        fold(
            torch.bmm(left.transpose(1, 2), by_group(grad[share], windows.groups)),
            (share.stop - share.start, channels, *image),
            windows,
        )
        for share in shares(batch, column_elements(image, channels, windows))
    ]
    return together(parts, (batch, channels, *image), grad)


def to_weight(grad: Tensor, images: Tensor, weight: Tensor, windows: Windows) -> Tensor:
    batch, channels, *image = images.shape
    result: Tensor | None = None
    for share in shares(batch, column_elements(image, channels, windows)):
        left = by_group(grad[share], windows.groups)
        part = torch.bmm(left, columns(images[share], windows).transpose(1, 2))
        result = part if result is None else result.add_(part)
    return torch.zeros_like(weight) if result is None else result.reshape(weight.shape)


def together(parts: Sequence[Tensor], sizes: Sequence[int], like: Tensor) -> Tensor:
    """The parts of a batch, joined."""
    if len(parts) == 1:
        return parts[0]
    result = like.new_empty(sizes)
    first = 0
    for part in parts:
        result[first : first + part.shape[0]] = part
        first += part.shape[0]
    return result


def filled_up(images: Tensor, sizes: Sequence[int]) -> Tensor:
    """Images with zeros at their ends. A transposed convolution may add more elements
    to its result than one stride has. Then the result has windows to which no element
    of `images` belongs."""
    ends: list[int] = []
    for wanted, size in zip(reversed(sizes), reversed(images.shape[2:]), strict=True):
        ends += [0, wanted - size]
    return torch.constant_pad_nd(images, ends) if any(ends) else images


def layout(images: Tensor, weight: Tensor) -> torch.memory_format:
    """The memory format of the CPU's results: channels_last if one operand has it."""
    formats = {suggest_memory_format(images), suggest_memory_format(weight)}
    formats.discard(torch.contiguous_format)
    return formats.pop() if formats else torch.contiguous_format


def laid_out(result: Tensor, images: Tensor, weight: Tensor) -> Tensor:
    """The result in the CPU's dtype and memory format."""
    format_ = layout(images, weight)
    dense = result.to(images.dtype).contiguous(memory_format=format_)
    # The stride of a dimension of size 1 is arbitrary so far.
    if format_ is torch.contiguous_format:
        strides = make_contiguous_strides_for(dense.shape)
    else:
        strides = make_channels_last_strides_for(dense.shape)
    return dense.as_strided(dense.shape, strides)


def convolution(
    images: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    if not images.is_floating_point():
        # There are matrix products of floats only.
        return without_row(
            images,
            weight,
            bias,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
        )
    windows = Windows(weight.shape[2:], stride, padding, dilation, groups)
    if transposed:
        sizes = windows.image(images.shape[2:], output_padding)
        filled = filled_up(images, windows.counts(sizes))
        result = to_input(filled, weight, windows, sizes)
        if bias is not None:
            result = result + bias.reshape(-1, *[1] * (images.dim() - 2))
    else:
        result = forward(images, weight, bias, windows)
    return laid_out(result, images, weight)


def convolution_backward(
    grad: Tensor,
    images: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> Gradients:
    if not images.is_floating_point():
        return without_row_backward(
            grad,
            images,
            weight,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            wanted,
        )
    windows = Windows(weight.shape[2:], stride, padding, dilation, groups)
    to_images = of_weight = of_bias = None
    if wanted[0]:
        if transposed:
            to_images = forward(grad, weight, None, windows)
            for d in range(2, images.dim()):
                to_images = to_images.narrow(d, 0, images.shape[d])
        else:
            to_images = to_input(grad, weight, windows, images.shape[2:])
        to_images = laid_out(to_images, images, weight)
    if wanted[1]:
        if transposed:
            filled = filled_up(images, windows.counts(grad.shape[2:]))
            of_weight = to_weight(filled, grad, weight, windows)
        else:
            of_weight = to_weight(grad, images, weight, windows)
        of_weight = laid_out(of_weight, images, weight)
    if wanted[2]:
        of_bias = grad.sum([d for d in range(grad.dim()) if d != 1])
    return to_images, of_weight, of_bias


@dataclass(frozen=True)
class Convolution(Decomposed):
    """A convolution or its gradients: by oneDNN if it has a primitive for the device
    and the operands, else by `function`."""

    template: ClassVar[str] = "convolution"


ROWS = (
    Convolution("convolution_overrideable", convolution, FLOATING_ONLY, flops=2),
    Convolution(
        "convolution_backward_overrideable",
        convolution_backward,
        FLOATING_ONLY,
        flops=4,
    ),
)
