"""Rows of images: pooling, upsampling, sampling, unfolding and convolution.

Each case calls a row and its backward, and is compared with the CPU.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import xpurt
from kernels.database_names import OF_IMAGES
from kernels.kernel_forced import check_on_queue
from xpurt import _C
from xpurt.testing.oracle import agree

SIZES = {1: (2, 4, 9), 2: (2, 4, 7, 9), 3: (2, 4, 5, 6, 7)}

Call = Callable[..., Any]


def pooling(axes: int) -> dict[str, list[Call]]:
    d = f"{axes}d"
    largest = getattr(F, f"max_pool{d}")
    mean = getattr(F, f"avg_pool{d}")
    return {
        f"max_pool{d}_with_indices": [
            lambda x: largest(x, 3, 2, 1, ceil_mode=True, return_indices=True)[0],
            lambda x: largest(x, 2, dilation=2, stride=1),
        ],
        f"avg_pool{d}": [
            lambda x: mean(x, 3, 2, 1, ceil_mode=True),
            lambda x: mean(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            lambda x: mean(x, 2, divisor_override=3),
        ],
        f"_adaptive_avg_pool{d}": [
            lambda x: getattr(F, f"adaptive_avg_pool{d}")(x, (4, 2, 3)[:axes])
        ],
        f"adaptive_max_pool{d}": [
            lambda x: getattr(F, f"adaptive_max_pool{d}")(x, (4, 2, 3)[:axes])
        ],
    }


def upsampling(
    name: str, mode: str, axes: int, **options: Any
) -> dict[str, list[Call]]:
    def to(**how: Any) -> Call:
        return lambda x: F.interpolate(x, mode=mode, **how, **options)

    return {
        f"{name}{axes}d": [
            to(scale_factor=1.7),
            to(scale_factor=2.0),
            to(size=(4, 13, 5)[:axes]),
            to(size=(1, 13, 1)[:axes]),
        ]
    }


def sampling(axes: int, mode: str) -> list[Call]:
    generator = torch.Generator().manual_seed(1)
    grid = torch.rand((2, *(3, 4, 5)[:axes], axes), generator=generator) * 2.6 - 1.3
    grid.requires_grad_()

    def call(padding: str, aligned: bool) -> Call:
        def sampled(x: torch.Tensor) -> torch.Tensor:
            own = grid.to(x.device)
            return F.grid_sample(x, own, mode, padding, align_corners=aligned)

        return sampled

    return [
        call(padding, aligned)
        for padding in ("zeros", "border", "reflection")
        for aligned in (False, True)
    ]


CASES: dict[tuple[str, int], list[Call]] = {
    **{(name, 2): calls for name, calls in pooling(2).items()},
    **{(name, 3): calls for name, calls in pooling(3).items()},
    **{
        (name, axes): calls
        for axes in (1, 2, 3)
        for row, mode in (
            ("upsample_nearest", "nearest"),
            ("_upsample_nearest_exact", "nearest-exact"),
        )
        for name, calls in upsampling(row, mode, axes).items()
    },
    **{
        (name, axes): calls
        for axes, row, mode in (
            (1, "upsample_linear", "linear"),
            (2, "upsample_bilinear", "bilinear"),
            (2, "upsample_bicubic", "bicubic"),
            (3, "upsample_trilinear", "trilinear"),
        )
        for name, calls in {
            name: [*calls, *aligned]
            for (name, calls), aligned in zip(
                upsampling(row, mode, axes).items(),
                upsampling(row, mode, axes, align_corners=True).values(),
                strict=True,
            )
        }.items()
    },
    ("grid_sampler_2d", 2): [
        call
        for mode in ("bilinear", "nearest", "bicubic")
        for call in sampling(2, mode)
    ],
    ("grid_sampler_3d", 3): [
        call for mode in ("bilinear", "nearest") for call in sampling(3, mode)
    ],
    ("im2col", 2): [lambda x: F.unfold(x, (2, 3), (2, 1), (1, 2), (2, 3))],
    ("col2im", 2): [
        lambda x: F.fold(x.flatten(2)[:, :, :9], (6, 5), (1, 2), (1, 2), 0, (2, 1))
    ],
}


def check(row: str, calls: list[Call], x: torch.Tensor) -> None:
    _C.reset_op_report()
    with xpurt.kernel_policy("sycl"):
        for call in calls:
            agree(call, x, rtol=1e-5, atol=1e-5)
        torch.xpu.synchronize()
    backward = {"im2col": "col2im", "col2im": "im2col"}.get(row, f"{row}_backward")
    check_on_queue(f"aten::{row}", f"aten::{backward}")


def test_every_row_has_a_case() -> None:
    rows = {row for row, _ in CASES} | {
        f"{row}_backward" for row, _ in CASES if not row.endswith(("2col", "2im"))
    }
    assert rows | {
        "convolution_overrideable",
        "convolution_backward_overrideable",
    } == set(OF_IMAGES)


@pytest.mark.one_in(2)
@pytest.mark.beyond_cpu(case=[])
@pytest.mark.parametrize("case", CASES, ids="{0[0]}".format)
def test_rows(case: tuple[str, int], xpu: torch.device) -> None:
    row, axes = case
    check(row, CASES[case], torch.randn(SIZES[axes], requires_grad=True))


@pytest.mark.parametrize("narrow", [torch.channels_last, torch.bfloat16], ids=str)
def test_layouts_and_narrow_floats(narrow: Any, xpu: torch.device) -> None:
    """One row for each kind of text."""
    x = torch.randn(SIZES[2])
    if narrow is torch.bfloat16:
        x, near = x.bfloat16(), 3e-2
    else:
        x, near = x.contiguous(memory_format=narrow), 1e-5
    x.requires_grad_()
    with xpurt.kernel_policy("sycl"):
        for call in (
            lambda x: F.max_pool2d(x, 3, 2, 1),
            lambda x: F.avg_pool2d(x, 3, 2, 1),
            lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"),
            lambda x: F.conv2d(x, torch.ones(2, 4, 3, 3).to(x), padding=1),
        ):
            agree(call, x, rtol=near, atol=near)


CONVOLUTIONS = {
    "strided": (2, {"stride": 2, "padding": 1}, (6, 4, 3, 3)),
    "dilated": (2, {"dilation": (2, 1), "padding": (2, 0)}, (6, 4, 3, 3)),
    "grouped": (2, {"groups": 2, "padding": 1}, (6, 2, 3, 3)),
    "depthwise": (2, {"groups": 4}, (4, 1, 3, 3)),
    "line": (1, {"stride": 2, "padding": 2}, (6, 4, 3)),
    "volume": (3, {"stride": (1, 2, 1), "padding": 1, "dilation": 2}, (6, 4, 2, 2, 2)),
    "transposed": (2, {"stride": 3, "padding": 1, "output_padding": 2}, (4, 6, 3, 3)),
    "transposed groups": (2, {"stride": 2, "groups": 2}, (4, 3, 2, 3)),
    "transposed line": (1, {"dilation": 4, "output_padding": 2}, (4, 6, 3)),
    "transposed volume": (3, {"stride": 2, "output_padding": 1}, (4, 2, 2, 2, 2)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name: str, xpu: torch.device) -> None:
    axes, options, shape = CONVOLUTIONS[name]
    transposed = name.startswith("transposed")
    function = getattr(F, f"conv{'_transpose' if transposed else ''}{axes}d")
    x = torch.randn(SIZES[axes], requires_grad=True)
    weight = torch.randn(shape, requires_grad=True)
    channels = shape[1] * options.get("groups", 1) if transposed else shape[0]
    bias = torch.randn(channels, requires_grad=True)
    _C.reset_op_report()
    with xpurt.kernel_policy("sycl"):
        agree(function, x, weight, bias, rtol=1e-4, atol=1e-4, **options)
        agree(function, x, weight, rtol=1e-4, atol=1e-4, **options)
    for op in ("convolution_overrideable", "convolution_backward_overrideable"):
        check_on_queue(f"aten::{op}")


def test_a_large_batch_is_divided(
    xpu: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xpurt.kernels.rows.nn.convolution.MOST_ELEMENTS", 1000)
    x = torch.randn(5, 2, 6, 6, requires_grad=True)
    weight = torch.randn(3, 2, 3, 3, requires_grad=True)
    with xpurt.kernel_policy("sycl"):
        agree(F.conv2d, x, weight, rtol=1e-4, atol=1e-4)
        agree(F.conv2d, x[:0].detach().requires_grad_(), weight)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_one_channel_of_many_in_channels_last(mode: str, xpu: torch.device) -> None:
    """Its strides are those of channels_last, and so are the result's."""
    dtype = torch.uint8 if mode.startswith("nearest") else torch.float32
    x = torch.arange(64).view(2, 2, 4, 4).to(dtype)
    x = x.contiguous(memory_format=torch.channels_last)[:, :1]
    with xpurt.kernel_policy("sycl"):
        agree(F.interpolate, x, size=(3, 9), mode=mode, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_point_of_no_place_gives_what_the_cpu_gives(
    xpu: torch.device, mode: str, padding: str, number: float
) -> None:
    x = torch.rand(1, 2, 3, 5)
    grid = torch.tensor([[number, 0.5], [0.5, number], [number, 9.0], [-9.0, number]])
    grid = grid.view(1, 4, 1, 2).expand(1, 4, 9, 2).contiguous()

    def sampled(device: torch.device) -> list[torch.Tensor]:
        leaves = [each.to(device).requires_grad_() for each in (x, grid)]
        y = F.grid_sample(*leaves, mode, padding, align_corners=False)
        if mode == "bilinear" and padding != "zeros":  # the CPU's ends the process
            return [y.detach().cpu()]
        gradients = torch.autograd.grad(y.sum(), leaves)
        return [each.detach().cpu() for each in (y, *gradients)]

    with xpurt.kernel_policy("sycl"):
        found = sampled(xpu)
    wanted = sampled(torch.device("cpu"))
    torch.testing.assert_close(found, wanted, equal_nan=True)
