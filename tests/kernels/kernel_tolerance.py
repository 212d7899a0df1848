"""The tolerance of a kernel's result against PyTorch's CPU kernel's, by type."""

import torch
from torch.testing import assert_close

TOLERANCES = {
    torch.float16: (2e-3, 2e-3),
    torch.bfloat16: (1.6e-2, 1e-2),
    torch.float32: (1e-5, 2e-6),
    torch.float64: (1e-10, 1e-12),
}


def assert_near(
    actual: torch.Tensor,
    expected: torch.Tensor,
    factor: float = 1,
    check_stride: bool = True,
) -> None:
    """Equal in dtype, shape and strides, near in value; NaN is where NaN is."""
    rtol, atol = TOLERANCES.get(expected.dtype, (0.0, 0.0))
    assert actual.device.type == "xpu"
    assert_close(
        actual.cpu(),
        expected,
        rtol=rtol * factor,
        atol=atol * factor,
        equal_nan=True,
        check_stride=check_stride,
    )
