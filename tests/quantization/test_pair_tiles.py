"""Convolutions of 3x3 in integers by Winograd's algorithm, on processors with AVX2."""

from own_process import run

PREPARED = """
import torch, xpurt
from torch.nn import functional as F

torch.ones(1, device="xpu")

def quantized(x, weight, padding, zero, scale=None, bias=None, device="cpu", other=None):
    if scale is None:
        scale = torch.ones(len(weight))
    scales = scale, bias, torch.ones(1), torch.tensor([zero])
    moved = [each if each is None else each.to(device) for each in (x, weight, *scales, other)]
    other = moved.pop()
    shape = (1, 1), padding, (1, 1), 1
    return torch.ops.xpurt.int8_convolution(*moved, *shape, bias is not None, other).cpu()
"""


def run_with_avx2(program: str) -> None:
    run(PREPARED + program, fresh=True, ONEDNN_MAX_CPU_ISA="AVX2").check_returncode()


def test_sums_are_exact_integers() -> None:
    """In tiles that are cut, at each zero point, for each division among threads, and
    for the largest sums of the most channels. Those of one image are computed without
    tiles where there are few."""
    run_with_avx2(
        """
shapes = (
    # images, in, out, height, width, padding, zero point, threads
    (1, 16, 16, 40, 24, (0, 0), 0, 1),
    (2, 32, 48, 14, 14, (1, 1), 255, 2),
    (9, 48, 32, 7, 9, (1, 2), 100, 3),
    (60, 16, 16, 8, 8, (1, 1), 7, 2),
    (4, 1808, 16, 8, 8, (1, 1), 0, 1),
)
for images, into, out, height, width, padding, zero, threads in shapes:
    torch.set_num_threads(threads)
    x = torch.randint(-zero, 256 - zero, (images, into, height, width)).float()
    x[0] = -zero if zero > 127 else 255 - zero
    weight = torch.randint(-128, 128, (out, into, 3, 3), dtype=torch.int8)
    weight[0], weight[1] = 127, -128
    wanted = F.conv2d(x.double(), weight.double(), padding=padding)
    for device in ("cpu", "xpu"):
        found = quantized(x, weight, padding, zero, device=device)
        assert found.equal(wanted.float()), (images, into)
        assert found.is_contiguous(memory_format=torch.channels_last)
    other = torch.randint(-9999, 9999, wanted.shape).float()
    found = quantized(x, weight, padding, zero, other=other)
    assert found.equal(wanted.float() + other)
    of_channels = torch.rand(out) / 1000, torch.randn(out)
    found = quantized(x, weight, padding, zero, *of_channels)
    for one, image in zip(found, x):
        assert quantized(image[None], weight, padding, zero, *of_channels)[0].equal(one)
"""
    )


def test_written_weights_and_those_of_inference_mode() -> None:
    """A weight is kept in the forms of both kinds of convolution."""
    run_with_avx2(
        """
x = torch.randint(0, 256, (32, 16, 8, 8)).float()
weight = torch.randint(-128, 128, (16, 16, 3, 3), dtype=torch.int8)
for _ in range(2):
    for given in (x, x[:1]):
        wanted = F.conv2d(given.double(), weight.double(), padding=1)
        assert quantized(given, weight, (1, 1), 0).equal(wanted.float())
    weight.neg_()
with torch.inference_mode():
    assert quantized(x, weight.clone(), (1, 1), 0).equal(
        quantized(x, weight, (1, 1), 0)
    )
"""
    )
