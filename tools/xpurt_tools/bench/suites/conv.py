"""The distinct convolutions of ResNet-18 (He and others, 2015) on images of 224x224."""

from torch import Tensor
from torch.nn import functional as F

from xpurt_tools.bench.row import Row, Suite, on

BATCH = 8

# Channels in and out, size of the kernel, stride, size of the image.
SHAPES = (
    (3, 64, 7, 2, 224),
    (64, 64, 3, 1, 56),
    (64, 128, 3, 2, 56),
    (64, 128, 1, 2, 56),
    (128, 128, 3, 1, 28),
    (128, 256, 3, 2, 28),
    (128, 256, 1, 2, 28),
    (256, 256, 3, 1, 14),
    (256, 512, 3, 2, 14),
    (256, 512, 1, 2, 14),
    (512, 512, 3, 1, 7),
)


def _row(shape: tuple[int, int, int, int, int], *, backward: bool) -> Row:
    into, out, kernel, stride, size = shape

    def conv(x: Tensor, weight: Tensor) -> Tensor:
        return F.conv2d(x, weight, stride=stride, padding=kernel // 2)

    name = f"{into}->{out} {kernel}x{kernel}/{stride} at {size}"
    return on(
        f"{name}, backward" if backward else name,
        conv,
        (BATCH, into, size, size),
        (out, into, kernel, kernel),
        backward=backward,
    )


CONV = Suite(
    "conv",
    "the convolutions of ResNet-18, forward and backward",
    target=1.0,
    rows=tuple(_row(each, backward=way) for way in (False, True) for each in SHAPES),
)
