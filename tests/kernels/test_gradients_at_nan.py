"""Where an operand is NaN, gradients are those of PyTorch's vectorized CPU kernels: NaN,
the gradient that came in, or 0, by the comparisons of each. The rest of a tensor beside
whole vectors has others there."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import xpurt

Op = Callable[[torch.Tensor], torch.Tensor]
X = [1.0, -2.0, float("nan"), 7.0, 0.25, -0.25] * 16  # whole vectors, also of AVX-512
ACTIVATIONS = (
    "relu", "relu6", "selu", "elu", "celu", "gelu", "silu", "mish", "hardswish", "hardsigmoid",
    "hardtanh", "hardshrink", "softshrink", "tanhshrink", "leaky_relu", "softplus", "logsigmoid",
    "softsign", "sigmoid", "tanh",
)  # fmt: skip
ELEMENTS = (
    "abs", "sign", "clamp_max", "round", "sqrt", "rsqrt", "lgamma", "amax", "min", "prod",
    "nansum", "nan_to_num",
)  # fmt: skip
LOSSES = ("l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss")


def loss(name: str, reduction: str) -> Op:
    return lambda x: getattr(F, name)(x, x.detach().flip(0) * 3, reduction=reduction)


def labels(x: torch.Tensor, *of: int) -> torch.Tensor:
    return torch.tensor(of, device=x.device)


OPS: dict[str, Op] = {
    **{name: getattr(F, name) for name in ACTIVATIONS},
    **{
        name: lambda x, name=name: getattr(torch, name)(
            x, *([0.5] if name == "clamp_max" else [])
        )
        for name in ELEMENTS
    },
    **{
        f"{name}, {reduction}": loss(name, reduction)
        for name in LOSSES
        for reduction in ("none", "mean", "sum")
    },
    "multi_margin_loss": lambda x: F.multi_margin_loss(
        x[:6].view(2, 3), labels(x, 1, 0)
    ),
    "multilabel_margin_loss": lambda x: F.multilabel_margin_loss(
        x[:6].view(2, 3), labels(x, 1, -1, 0, 0, 2, -1).view(2, 3)
    ),
    "prelu": lambda x: F.prelu(x, x.new_full((1,), 0.25)),
    "max_pool2d": lambda x: F.max_pool2d(x.view(1, 1, 32, 3), 2, 1),
    "threshold": lambda x: F.threshold(x, 0.5, 2.0),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", OPS)
def test_gradients_at_nan(name: str, xpu: torch.device) -> None:
    def computed(device: torch.device | str) -> list[torch.Tensor]:
        x = torch.tensor(X, device=device, requires_grad=True)
        y = OPS[name](x)
        (grad,) = torch.autograd.grad(y, x, torch.full_like(y, 2.0))
        return [y.detach().cpu(), grad.cpu() + 0]

    with xpurt.kernel_policy("sycl"):
        found = computed(xpu)
    for one, other in zip(found, computed("cpu"), strict=True):
        torch.testing.assert_close(one, other, equal_nan=True, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_a_grid_with_nan(mode: str, xpu: torch.device) -> None:
    """The CPU has no gradients of points at NaN: it writes out of bounds."""
    x = torch.arange(1.0, 10.0).view(1, 1, 3, 3)
    nan = float("nan")
    grid = torch.tensor([[nan, 0.0], [0.0, nan], [0.25, 0.25]]).view(1, 1, 3, 2)
    image = x.to(xpu).requires_grad_()
    with xpurt.kernel_policy("sycl"):
        found = F.grid_sample(image, grid.to(xpu), mode=mode, align_corners=False)
        found.sum().backward()
    expected = F.grid_sample(x, grid, mode=mode, align_corners=False)
    torch.testing.assert_close(found.detach().cpu(), expected, equal_nan=True)
    x.requires_grad_()
    F.grid_sample(x, grid[:, :, 2:], mode=mode, align_corners=False).sum().backward()
    assert image.grad is not None
    torch.testing.assert_close(image.grad.cpu(), x.grad)
