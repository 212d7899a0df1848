"""A network of the ops that a layout is for, and what to compare it with."""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import xpurt

DTYPES = [torch.bfloat16, torch.float16, torch.float32]


class Images(nn.Module):
    """Convolutions, normalization, pooling, an addition, a concatenation."""

    def __init__(self, axes: int = 2) -> None:
        super().__init__()
        convolution, transposed, norm = {
            1: (nn.Conv1d, nn.ConvTranspose1d, nn.BatchNorm1d),
            2: (nn.Conv2d, nn.ConvTranspose2d, nn.BatchNorm2d),
            3: (nn.Conv3d, nn.ConvTranspose3d, nn.BatchNorm3d),
        }[axes]
        self.axes = axes
        self.first = convolution(3, 8, 3, padding=1)
        self.norm = norm(8)
        self.second = convolution(8, 8, 3, padding="same", bias=False)
        self.grouped = convolution(16, 8, 3, groups=4, dilation=1)
        self.back = transposed(8, 4, 3, stride=2)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> Tensor:
        pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[self.axes - 1]
        y = F.relu(self.norm(self.first(x)), inplace=True)
        y = torch.cat([y, y + self.second(y)], 1)
        y = self.back(pool(F.gelu(self.grouped(y)), 2))
        y = y.mean(tuple(range(2, y.dim())))
        result: Tensor = self.head(y).softmax(-1)
        return result


def images(axes: int = 2, device: str = "cpu") -> Tensor:
    return torch.randn(2, 3, *[9, 8, 10][:axes]).to(device)


def stock(device: str, dtype: torch.dtype) -> contextlib.AbstractContextManager[object]:
    """What a block with a layout is compared with."""
    if dtype == torch.float32:
        return contextlib.nullcontext()
    return torch.autocast(device, dtype)


def with_layout(device: str, dtype: torch.dtype = torch.bfloat16) -> xpurt.autocast:
    return xpurt.autocast(device, dtype, layout=torch._mkldnn)  # type: ignore[attr-defined]


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    """A few roundings of the dtype."""
    if dtype == torch.float32:
        return {"rtol": 1e-4, "atol": 1e-5}
    step = torch.finfo(dtype).eps
    return {"rtol": 4 * step, "atol": 4 * step}


@contextlib.contextmanager
def seen_strides(module: nn.Module) -> Iterator[list[tuple[int, ...]]]:
    """The strides that the inputs of a module have."""
    found: list[tuple[int, ...]] = []

    def look(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        found.append(inputs[0].stride())

    handle = module.register_forward_pre_hook(look)
    yield found
    handle.remove()
