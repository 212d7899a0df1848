"""Types that GPUs have an op in and the CPU has not: table, results, and refusals.

The values of every pair are compared by the conformance run, in its category of them.
"""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import xpurt
from xpurt import _C
from xpurt.kernels.rows.wider_types import INTEGERS, ROWS, WIDE, WiderTypes

HALVES = (torch.float16, torch.bfloat16)

# Rows of ops that have another name in PyTorch's database of ops.
DATABASE_NAMES = {
    "avg_pool3d": "nn.functional.avg_pool3d",
    "multi_margin_loss": "nn.functional.multi_margin_loss",
    "multilabel_margin_loss_forward": "nn.functional.multilabel_margin_loss",
    "multilabel_margin_loss_backward": "nn.functional.multilabel_margin_loss",
    "rrelu_with_noise": "nn.functional.rrelu",
    "_upsample_bicubic2d_aa": "_upsample_bilinear2d_aa",  # whose GPU kernel is the same
    "_fft_r2c": "fft.rfft",
    "_fft_c2c": "fft.fft",
    "_fft_c2r": "fft.irfft",
    "div": "div.no_rounding_mode",
    # Of derivatives.
    "cumprod": "prod",
    "flip": "prod",
}
# out= of transforms: the type of one side is the result's.
BOTH_SIDES = ("_fft_r2c", "_fft_c2r")


# What the CPU has, and a GPU takes a kernel of another type for.
ON_CPU: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "add": lambda x: x + x,
    "sub": lambda x: x - x,
    "mul": lambda x: x * x,
    "neg": torch.neg,
    "abs": torch.abs,
    "sgn": torch.sgn,
    "zero": lambda x: x.clone().zero_(),
    "conj_physical": torch.conj_physical,
    "isnan": torch.isnan,
    "eq": lambda x: x == x,
    "ne": lambda x: x != 0,
    "where": lambda x: torch.where(x == x, x, 0),
    "fill": lambda x: torch.fill(x, 2),
}


@pytest.mark.parametrize(
    "row", [r for r in ROWS if not r.on_cpu], ids=lambda r: f"{r.aten}-{r.dtypes[0]}"
)
def test_every_row_is_of_a_type_that_a_gpu_has(row: WiderTypes) -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    name = DATABASE_NAMES.get(row.aten, row.aten.removesuffix("_backward"))
    name = DATABASE_NAMES.get(name, name)
    infos = [op for op in op_db if name in (op.full_name, op.aten_name, op.name)]
    assert infos, name
    listed = set().union(
        *(op.supported_dtypes(each) for op in infos for each in ("cuda", "xpu"))
    )
    for dtype in row.dtypes:
        if row.aten not in BOTH_SIDES:
            assert getattr(torch, dtype) in listed
        wide = getattr(torch, WIDE[dtype])
        assert torch.promote_types(getattr(torch, dtype), wide) == wide


@pytest.mark.parametrize("row", [r for r in ROWS if r.on_cpu], ids=lambda r: r.aten)
def test_what_the_cpu_has_agrees(row: WiderTypes, xpu: torch.device) -> None:
    assert row.dtypes == ("complex32",)
    x = torch.randn(3, 4, dtype=torch.complex64).to(torch.complex32)
    function = ON_CPU[row.aten]
    expected, found = function(x), function(x.to(xpu))
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found.cpu(), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("policy", ["auto", "sycl", "native"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_counted(dtype: str, policy: str, xpu: torch.device) -> None:
    kind = getattr(torch, dtype)
    top = min(torch.iinfo(kind).max, 1000)
    values = torch.randint(
        0, top + 1, (500,), generator=torch.Generator().manual_seed(0)
    )
    values = values.to(kind)
    before = _C.kernel_policy()
    xpurt.set_kernel_policy(policy)
    try:
        for bins, least, most in ((7, 0, 0), (top, 0, top), (5, 10, 60), (3, 1.5, 9.5)):
            found = torch.histc(values.to(xpu), bins, least, most)
            expected = torch.histc(values.double(), bins, least, most)
            assert found.dtype == kind
            assert found.cpu().tolist() == expected.long().to(kind).tolist()
        out = torch.empty(0, dtype=kind, device=xpu)
        assert torch.histc(values.to(xpu), 4, out=out) is out
        assert out.sum(dtype=torch.int64).item() % 256 == 500 % 256
        assert torch.histc(values[:0].to(xpu), 4).tolist() == [0] * 4
        with pytest.raises(RuntimeError, match="bins"):
            torch.histc(values.to(xpu), 0)
    finally:
        xpurt.set_kernel_policy(before)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_images_are_resized_in_halves(
    dtype: torch.dtype, mode: str, xpu: torch.device
) -> None:
    def resized(image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        image = image.detach().requires_grad_()
        small = F.interpolate(image, size=(5, 4), mode=mode, antialias=True)
        (slope,) = torch.autograd.grad(small.sum(), image)
        return small.detach(), slope

    image = torch.rand(2, 3, 9, 8).to(dtype)
    for found, expected in zip(
        resized(image.to(xpu)), resized(image.float()), strict=True
    ):
        assert found.dtype == dtype
        torch.testing.assert_close(found.cpu(), expected.to(dtype))


def test_results_are_written_where_they_are_wanted(xpu: torch.device) -> None:
    x = torch.randn(3, 4, dtype=torch.complex64).to(torch.complex32)
    expected = x.to(torch.complex64).exp().to(torch.complex32)

    def is_right(found: torch.Tensor) -> None:
        assert found.dtype == torch.complex32
        torch.testing.assert_close(found.cpu(), expected)

    given = x.to(xpu)
    is_right(given.exp())
    is_right(given.t().exp().t())
    is_right(given.conj().exp().conj())
    room = torch.zeros(3, 4, 2, dtype=torch.complex32, device=xpu)
    assert torch.exp(given, out=room[..., 1]).data_ptr() == room[..., 1].data_ptr()
    is_right(room[..., 1])
    assert room[..., 0].cpu().eq(0).all()
    changed = given.clone()
    view = changed[1:]
    assert changed.exp_() is changed
    is_right(changed)
    is_right(torch.cat((changed[:1], view)))
    with pytest.raises(RuntimeError, match="single memory location"):
        given[:1].expand(3, 4).exp_()


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        # Types that no GPU has.
        (lambda x: torch.histc(x > 0), "Bool"),
        (lambda x: torch.histc(x.to(torch.complex64)), "Complex"),
        (lambda x: x.to(torch.complex32) @ x.to(torch.complex32), "ComplexHalf"),
        (lambda x: x.bool().cos_(), "can't be cast"),
        # What is wrong in any type.
        (lambda x: F.avg_pool3d(x.half()[None], 9), "expected"),
        (lambda x: F.multi_margin_loss(x.half(), x[:2, 0].long()), "target"),
        (
            lambda x: torch.ops.aten.avg_pool3d.out(
                x.half()[None, None, None], [1, 1, 1], out=x.new_empty(0)
            ),
            "dtype|type",
        ),
    ],
)
def test_what_is_wrong_is_refused(
    refused: Callable[[torch.Tensor], object], error: str, xpu: torch.device
) -> None:
    # Of a complex type histc raises TypeError since PyTorch 2.15.
    with pytest.raises((RuntimeError, TypeError), match=error):
        refused(torch.rand(3, 3, device=xpu))


@pytest.mark.mappings("GPU")
def test_a_wide_kernel_serves_a_device_that_the_host_cannot_read(
    xpu: torch.device,
) -> None:
    """The row for the wider type runs, and is counted."""
    if xpurt.get_xpu_mapping() != "GPU":
        pytest.skip("the host reads the memory of this device")
    x = torch.randn(64, dtype=torch.complex64).to(torch.complex32).to(xpu)
    before = _C.kernel_policy()
    xpurt.set_kernel_policy("auto")
    xpurt.op_report(reset=True)
    try:
        (x.exp() * x).sgn().abs().sum().zero_()
    finally:
        xpurt.set_kernel_policy(before)
    tiers = {row.op: row.tier for row in xpurt.op_report(reset=True)}
    assert tiers["aten::exp"] == tiers["aten::mul.Tensor"] == "sycl"
    assert "copy" not in tiers.values()


def test_complex_numbers_are_added_but_for_nan(xpu: torch.device) -> None:
    for dtype in (torch.complex32, torch.complex64, torch.complex128):
        x = torch.tensor([[1 + 2j, complex("nan+1j")], [3, 4j]]).to(dtype)
        given = x.to(xpu).requires_grad_()
        found = torch.nansum(given, 1)
        assert found.tolist() == [1 + 2j, 3 + 4j]
        (slope,) = torch.autograd.grad(found.abs().sum(), given)
        assert slope[0, 1].item() == 0
        out = torch.empty(0, dtype=dtype, device=xpu)
        assert torch.nansum(x.to(xpu), 0, out=out).tolist() == [4 + 2j, 4j]
