"""Every dimension 0 in turn, forward and backward: the CPU's result, or its error.

The whole sweep is a command: `python -m xpurt conformance` (docs/conformance.md).
"""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

import xpurt
from xpurt.testing import agree

Op = Callable[[torch.Tensor], object]


def losses(name: str, reduction: str) -> Op:
    return lambda x: getattr(F, name)(x, torch.zeros_like(x), reduction=reduction)


def interpolated(mode: str) -> Op:
    return lambda x: F.interpolate(x, scale_factor=2, mode=mode)


def to_size(mode: str) -> Op:
    return lambda x: F.interpolate(x, [3] * (x.dim() - 2), mode=mode)


def normalized(x: torch.Tensor) -> torch.Tensor:
    """Over two groups, with a weight and a bias that have gradients."""
    weight, bias = x.new_ones(2, x.shape[1]).unbind()
    return F.group_norm(x, 2, weight * x.sum().exp(), bias * x.sum().exp())


LOSSES = ("mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy")
OPS: dict[str, tuple[Op, tuple[int, ...]]] = {
    **{
        f"{name}, {reduction}": (losses(name, reduction), (2, 3))
        for name in LOSSES
        for reduction in ("none", "mean", "sum")
    },
    **{
        f"{name} interpolation": (op(name), (2, 4, *[3] * axes))
        for op in (interpolated, to_size)
        for name, axes in (("linear", 1), ("bilinear", 2), ("trilinear", 3))
    },
    **{
        f"{name} interpolation": (interpolated(name), (2, 4, 3, 3))
        for name in ("nearest", "nearest-exact", "bicubic")
    },
    "group_norm": (normalized, (2, 4, 3)),
    "group_norm of images": (normalized, (2, 4, 3, 3)),
    "nonzero": (torch.nonzero, (2, 3)),
    "nonzero of zeros": (lambda x: torch.nonzero(x * 0), (2, 3)),
    "argwhere": (torch.argwhere, (3,)),
}


@pytest.mark.parametrize("name", OPS)
def test_every_dimension_empty(name: str, xpu: torch.device) -> None:
    op, full = OPS[name]
    for place in range(len(full)):
        shape = [0 if d == place else size for d, size in enumerate(full)]
        x = torch.rand(shape, requires_grad=not name.startswith(("nonzero", "argw")))
        with xpurt.kernel_policy("sycl"):
            try:
                agree(op, x, device=xpu)
            except AssertionError as error:
                error.add_note(str(shape))
                raise
            except RuntimeError:
                pass  # as on the CPU: agree has seen to that
