"""Calls of images: pools, resampling, padding, convolutions."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from xpurt_tools.conformance.sweeps.shapes_cases import Call, Case, Make, with_gradients
from xpurt_tools.conformance.sweeps.shapes_networks import network
from xpurt_tools.conformance.sweeps.shapes_operands import Operands

IMAGE = {"width": (7, 16, 33), "height": (7, 16, 33), "planes": (1, 2, 5, 33)}


def images(dims: int) -> Make:
    """Images of 1, 2 or 3 dimensions, the first one `height` and the last one `width`."""

    def make(new: Operands, case: Case) -> tuple[Any, ...]:
        sizes = (case["height"], 5, case["width"])
        of = {1: sizes[2:], 2: sizes[::2], 3: sizes}[dims]
        return (new(1, case["planes"], *of),)

    return make


def image(
    name: str, dims: int, run: Callable[..., Any], *rows: str, **more: Any
) -> Call:
    return network(name, "images", images(dims), with_gradients(run), IMAGE, *rows,
                   most=1 << 18, **{"reference": "same", **more})  # fmt: skip


def _pads(dims: int) -> list[int]:
    return [1, 2, 0, 1, 2, 1][: 2 * dims]


def _unpooled(x: Tensor, dims: int) -> Tensor:
    pooled = getattr(F, f"max_pool{dims}d")(x, 2, return_indices=True)
    made: Tensor = getattr(F, f"max_unpool{dims}d")(*pooled, 2, output_size=x.shape)
    return made


IMAGES = (
    *(image(f"max_pool{d}d", d, partial(getattr(F, f"max_pool{d}d"), kernel_size=3, stride=2, padding=1),
            f"max_pool{d}d_with_indices",
            f"max_pool{d}d_with_indices_backward") for d in (2, 3)),
    *(image(f"avg_pool{d}d", d, partial(getattr(F, f"avg_pool{d}d"), kernel_size=3, stride=2),
            f"avg_pool{d}d",
            f"avg_pool{d}d_backward") for d in (2, 3)),
    *(image(f"adaptive_avg_pool{d}d", d, partial(getattr(F, f"adaptive_avg_pool{d}d"), output_size=3),
            f"_adaptive_avg_pool{d}d",
            f"_adaptive_avg_pool{d}d_backward") for d in (2, 3)),
    *(image(f"adaptive_max_pool{d}d", d, partial(getattr(F, f"adaptive_max_pool{d}d"), output_size=3),
            f"adaptive_max_pool{d}d", f"adaptive_max_pool{d}d_backward") for d in (2, 3)),
    *(image(f"upsample {mode} {d}d", d, run, f"{row}{d}d", f"{row}{d}d_backward")
      for mode, row, ds in (("nearest", "upsample_nearest", (1, 2, 3)),
                            ("nearest-exact", "_upsample_nearest_exact", (1, 2, 3)),
                            ("linear", "upsample_linear", (1,)), ("bilinear", "upsample_bilinear", (2,)),
                            ("trilinear", "upsample_trilinear", (3,)), ("bicubic", "upsample_bicubic", (2,)))
      for d in ds
      for run in [lambda x, mode=mode: F.interpolate(x, scale_factor=1.7, mode=mode)]),
    *(image(f"{mode} pad {d}d", d, run, f"{row}_pad{d}d", f"{row}_pad{d}d_backward")
      for mode, row in (("reflect", "reflection"), ("replicate", "replication"))
      for d in (1, 2, 3)
      for run in [lambda x, d=d, mode=mode: F.pad(x, _pads(d), mode)]),
    image("unfold", 2, lambda x: F.unfold(x, 3, padding=1), "im2col", "col2im"),
    image("grid_sample 2d", 2, lambda x: F.grid_sample(x, _grid(x, 2), align_corners=False),
          "grid_sampler_2d", "grid_sampler_2d_backward"),
    image("grid_sample 3d", 3, lambda x: F.grid_sample(x, _grid(x, 3), align_corners=False),
          "grid_sampler_3d", "grid_sampler_3d_backward"),
    image("max_unpool2d", 2, partial(_unpooled, dims=2), "max_unpool2d", "xpurt::max_unpool"),
    image("max_unpool3d", 3, partial(_unpooled, dims=3), "max_unpool3d", "xpurt::max_unpool"),
    image("pixel_shuffle", 2, lambda x: F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2),
          "pixel_shuffle", "pixel_unshuffle"),
    image("channel_shuffle", 2, lambda x: F.channel_shuffle(x.repeat(1, 2, 1, 1), 2),
          "channel_shuffle"),
    image("conv1d", 1, lambda x: F.conv1d(x, _kernel(x, 1), padding=1),
          "convolution_overrideable",
          "convolution_backward_overrideable", rtol=1e-3),
    image("conv2d", 2, lambda x: F.conv2d(x, _kernel(x, 2), padding=1),
          "convolution_overrideable",
          "convolution_backward_overrideable", rtol=1e-3),
    image("conv2d, by groups", 2, lambda x: F.conv2d(x, _kernel(x, 2)[:, :1], padding=1,
          groups=x.size(1)) if x.size(1) <= 3 else F.conv2d(x, _kernel(x, 2)),
          "convolution_overrideable",
          "convolution_backward_overrideable", rtol=1e-3),
)  # fmt: skip


def _grid(x: Tensor, dims: int) -> Tensor:
    shape = (1, *x.shape[2:], dims)
    count = torch.tensor(shape).prod().item()
    steps = torch.arange(int(count), dtype=x.dtype) * 0.37 % 2.1 - 1.05
    return steps.view(shape).to(x.device)


def _kernel(x: Tensor, dims: int) -> Tensor:
    shape = (3, x.size(1), *((3,) * dims))
    count = torch.tensor(shape).prod().item()
    steps = torch.arange(int(count), dtype=x.dtype) % 7 - 3
    return steps.view(shape).to(x.device)
