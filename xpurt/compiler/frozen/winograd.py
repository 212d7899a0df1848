"""Convolutions of 3x3 by fewer multiplications, in graphs with frozen parameters.

Note [Winograd's convolutions]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A kernel transforms the tiles, 36 matrix products of oneDNN multiply them by the
transformed weight, and a second kernel transforms the products. Tiles are processed in
parts that stay in the processor's caches. See Note [Winograd's numbers] in
kernels/winograd.py for the algorithm and its errors.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily

from xpurt.compiler.kernel_launch import kernel
from xpurt.kernels.winograd import transformed_weight

BLOCK: Final = 16  # adjacent channels
_FLOATS: Final = 1 << 20  # of the transformed tiles that exist at a time, about
_GAP: Final = 16  # floats; see Note [Distances of matrices] in onednn/fused_product.h

# What one thread of an AMD EPYC with AVX-512 computes and moves; orders of magnitude.
_FLOPS_PER_US: Final = 100_000.0
_BYTES_PER_US: Final = 10_000.0
# It has to be expected to take less than this fraction of a direct convolution, and that
# has to be long enough for three launches per part not to count.
_GAIN: Final = 0.8
_LEAST_US: Final = 300.0

_library: Any = torch.library.Library("xpurt", "FRAGMENT")  # type: ignore[no-untyped-call]


def define() -> None:
    """Defines the op. Called once."""
    _library.define(
        "winograd_convolution(Tensor input, Tensor weight, Tensor? bias, Tensor? other, "
        "int channels, bool relu) -> Tensor"
    )
    _library.impl("winograd_convolution", _run, "XPU")
    torch.library.register_fake("xpurt::winograd_convolution", _fake, lib=_library)


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution of 3x3 with a stride of 1 and a padding of 1."""

    images: int
    into: int  # channels
    out: int
    height: int
    width: int

    @property
    def tiles(self) -> int:
        return self.images * -(-self.height // 4) * -(-self.width // 4)

    @property
    def part(self) -> int:
        """The number of tiles that are transformed at a time."""
        most = max(128, _FLOATS // (36 * (self.into + self.out)))
        parts = -(-self.tiles // most)
        return -(-self.tiles // parts)

    @property
    def pays(self) -> bool:
        """Whether the layer is expected to take less time than a direct convolution."""
        pairs = self.into * self.out
        direct_us = (
            2 * 9 * pairs * self.images * self.height * self.width / _FLOPS_PER_US
        )
        moved = 2 * self.tiles * (self.into + self.out)
        moved += pairs * -(-self.tiles // self.part)  # the weight, per part
        took_us = (
            2 * 36 * pairs * self.tiles / _FLOPS_PER_US + 4 * 36 * moved / _BYTES_PER_US
        )
        return direct_us >= _LEAST_US and took_us < _GAIN * direct_us


def pack(weight: Tensor, layer: Layer) -> Tensor | None:
    """The transformed weight of a layer in the layout of its products; None if the
    device has no primitive for them. weight: (out, into, 3, 3), on xpu."""
    with unset_fake_temporarily():
        tiles = _matrices(weight, layer.part, layer.into)
        packed: Tensor = torch.ops.xpurt.pack_product_weight(
            tiles, transformed_weight(weight), *_rest(layer.into, layer.out)
        )
    return packed if packed.numel() > 0 else None


def _rest(into: int, out: int) -> tuple[Any, ...]:
    """The arguments of the op for products, after the weight."""
    return None, None, [36, into, out], "none", 0.0, 0.0


def _matrices(like: Tensor, rows: int, columns: int) -> Tensor:
    distance = rows * columns + _GAP
    return like.new_empty_strided((36, rows, columns), (distance, columns, 1))


@dataclass(frozen=True)
class _Kernels:
    """The transforms of a layer."""

    layer: Layer
    bias: bool
    other: bool
    relu: bool

    @cached_property
    def before(self) -> Any:
        return self._made(
            "winograd_before",
            "__global float* made, __global const float* images",
            f"""
            WINOGRAD_TILE({self.layer.into})
            float d[6][6];
            EVERY_OF_36 {{
              const long y = top + i - 1, x = left + j - 1;
              const bool inside = y >= 0 && y < HEIGHT && x >= 0 && x < WIDTH;
              d[i][j] = inside ? images[base + (y * WIDTH + x) * 16] : 0;
            }}
            EVERY_OF_6 WINOGRAD_TO(d[i][0], d[i][1], d[i][2], d[i][3], d[i][4], d[i][5])
            EVERY_OF_6 WINOGRAD_TO(d[0][i], d[1][i], d[2][i], d[3][i], d[4][i], d[5][i])
            EVERY_OF_36 made[(i * 6 + j) * stride + place * {self.layer.into} + plane]
                = d[i][j];
            """,
            "wr",
        )

    @cached_property
    def after(self) -> Any:
        others = [("bias", self.bias), ("other", self.other)]
        given = [name for name, is_given in others if is_given]
        value = "m[i][j]"
        value += " + bias[plane]" if self.bias else ""
        value += " + other[at]" if self.other else ""
        store = "value < 0 ? 0 : value" if self.relu else "value"  # keeps NaN
        return self._made(
            "winograd_after",
            ", ".join(
                [
                    "__global float* images",
                    "__global const float* products",
                    *(f"__global const float* {name}" for name in given),
                ]
            ),
            f"""
            WINOGRAD_TILE({self.layer.out})
            float m[6][6];
            EVERY_OF_36 m[i][j] =
                products[(i * 6 + j) * stride + place * {self.layer.out} + plane];
            EVERY_OF_6 WINOGRAD_FROM(m[0][i], m[1][i], m[2][i], m[3][i], m[4][i], m[5][i])
            for (int i = 0; i < 4; ++i)
              WINOGRAD_FROM(m[i][0], m[i][1], m[i][2], m[i][3], m[i][4], m[i][5])
            for (int i = 0; i < 4; ++i)
              for (int j = 0; j < 4; ++j) {{
                if (top + i >= HEIGHT || left + j >= WIDTH) continue;
                const long at = base + ((top + i) * WIDTH + left + j) * 16;
                const float value = {value};
                images[at] = {store};
              }}
            """,
            "w" + "r" * (1 + len(given)),
        )

    def _made(self, name: str, parameters: str, body: str, letters: str) -> Any:
        text = f"""
        #define HEIGHT {self.layer.height}L
        #define WIDTH {self.layer.width}L
        __kernel void {name}({parameters}, const long tiles, const long first,
                             const long stride) {{
          {body}
        }}
        """
        return kernel(
            name,
            text,
            functions=[],
            templates=["compiled/winograd"],
            arguments=f"{letters}iii",
            group=(BLOCK, 1, 1),
            lanes=False,
            faults=False,
            flops=200.0,  # per channel and tile
            sizes=[],
        )


@cache
def _kernels(layer: Layer, bias: bool, other: bool, relu: bool) -> _Kernels:
    return _Kernels(layer, bias, other, relu)


def _run(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    other: Tensor | None,
    channels: int,
    relu: bool,
) -> Tensor:
    """input: (N, into / 16, H, W, 16); weight: of pack(); bias: (channels); other: as the
    result, (N, channels / 16, H, W, 16)."""
    images, blocks, height, width, _ = input.shape
    layer = Layer(images, blocks * BLOCK, channels, height, width)
    kernels = _kernels(layer, bias is not None, other is not None, relu)
    result = input.new_empty(_sizes(input, channels))
    added = [each.contiguous() for each in (bias, other) if each is not None]
    input = input.contiguous()
    part, rest = layer.part, _rest(layer.into, channels)
    made = _matrices(input, part, layer.into)
    for begin in range(0, layer.tiles, part):
        # Products are of one size: the last part repeats tiles of the one before.
        first = min(begin, layer.tiles - part)
        kernels.before(made, input, part, first, made.stride(0), layer.into, part, 1)
        products = torch.ops.xpurt.fused_product(made, weight, *rest)
        kernels.after(
            result, products, *added, part, first, products.stride(0), channels, part, 1
        )
    return result


def _sizes(input: Tensor, channels: int) -> list[int]:
    return [input.shape[0], channels // BLOCK, *input.shape[2:]]


def _fake(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    other: Tensor | None,
    channels: int,
    relu: bool,
) -> Tensor:
    return input.new_empty(_sizes(input, channels))
