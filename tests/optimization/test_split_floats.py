"""The halves of float32 numbers give them back, bit by bit."""

import pytest
import torch
from torch import Tensor

from xpurt.optimization.training.split_floats import join, split, split_into

SPECIAL = [
    0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), 3.4028234663852886e38, 1e-45,
    -1e-45, 1.1754942e-38, 1.1754944e-38, 1.00390625, 1.01171875, -1.00390625,
]  # fmt: skip


def bits_of(x: Tensor) -> Tensor:
    return x.view(torch.int32)


def joined(upper: Tensor, lower: Tensor) -> Tensor:
    return join(upper, lower, torch.empty_like(upper, dtype=torch.float32))


def any_finite() -> Tensor:
    """Numbers of any exponent, and those at which rounding is close."""
    drawn = torch.randint(-(2**31), 2**31, (1 << 16,), dtype=torch.int64).int()
    ties = drawn[: 1 << 14] & -0x10000 | 0x8000
    near = torch.cat((ties, ties - 1, ties + 1, ties ^ 0x8000))
    x = torch.cat((drawn, near)).view(torch.float32)
    return x[x.isfinite()]


def test_the_halves_give_any_number_back() -> None:
    x = torch.cat((any_finite(), torch.tensor(SPECIAL)))
    assert torch.equal(bits_of(joined(*split(x))), bits_of(x))


def test_the_upper_half_is_the_nearest_number() -> None:
    x = any_finite()
    upper, _ = split(x)
    nearest = x.bfloat16()
    tied = bits_of(x) & 0xFFFF == 0x8000
    assert torch.equal(upper[~tied], nearest[~tied])
    distance = (upper.double() - x.double()).abs()[tied & upper.isfinite()]
    assert torch.equal(
        distance, (nearest.double() - x.double()).abs()[tied & upper.isfinite()]
    )


@pytest.mark.parametrize("nan", [0x7FC00000, 0xFFC00000 - (1 << 32), 0x7F800001])
def test_nan_stays_nan(nan: int) -> None:
    x = torch.tensor([nan], dtype=torch.int32).view(torch.float32)
    upper, lower = split(x)
    assert torch.equal(bits_of(joined(upper, lower)), bits_of(x))
    assert not upper.isfinite().any()


def test_on_xpu(xpu: torch.device) -> None:
    x = torch.cat((any_finite(), torch.tensor(SPECIAL)))
    upper, lower = split(x.to(xpu))
    expected = split(x)
    assert torch.equal(upper.cpu(), expected[0])
    assert torch.equal(lower.cpu(), expected[1])
    assert torch.equal(bits_of(joined(upper, lower).cpu()), bits_of(x))


def test_a_write_is_counted_in_the_version_of_the_upper_half() -> None:
    upper, lower = split(torch.rand(3))
    parameter = torch.nn.Parameter(upper)
    before = parameter._version
    split_into(torch.ones(3), parameter, lower)
    assert parameter._version > before
    assert torch.equal(joined(parameter.detach(), lower), torch.ones(3))


def test_strides_may_be_any() -> None:
    x = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
    upper, lower = split(x)
    assert upper.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(joined(upper, lower.contiguous()), x)
