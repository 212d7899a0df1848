"""Layouts are kept: the strides of every result are the CPU's."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
import torch.nn.functional as F

from xpurt.testing.oracle import Disagreement, agree

pytestmark = pytest.mark.usefixtures("policy")

Op = Callable[[torch.Tensor], object]

# For a tensor of shape (2, 4, 6, 6), and (2, 4, 4, 6, 6) for channels_last_3d.
OPS: dict[str, Op] = {
    "relu": F.relu,
    "relu_": lambda x: x.clone().relu_(),
    "gelu": F.gelu,
    "add": lambda x: x + x,
    "add a number": lambda x: x + 1,
    "add channels": lambda x: x + x[:1, :, :1, :1],
    "mul by a plain tensor": lambda x: x * x.contiguous(),
    "plain times it": lambda x: x.contiguous() * x,
    "compare": lambda x: x > 0.5,
    "where": lambda x: torch.where(x > 0.5, x, 0),
    "cat": lambda x: torch.cat((x, x), 1),
    "cat with a plain tensor": lambda x: torch.cat((x, x.contiguous()), 1),
    "stack": lambda x: torch.stack((x, x)),
    "clone": torch.clone,
    "zeros_like": torch.zeros_like,
    "empty_like": lambda x: torch.empty_like(x).stride(),
    "to half": lambda x: x.half(),
    "to double and back": lambda x: x.double().float(),
    "there and back": lambda x: x.cpu().clone().to(x.device),
    "contiguous": torch.Tensor.contiguous,
    "sum": lambda x: x.sum(1, keepdim=True),
    "softmax": lambda x: x.softmax(1),
    "dropout": lambda x: F.dropout(x, 0.5, training=False),
    "chunk": lambda x: x.chunk(2, -1)[1].neg(),
    "flip": lambda x: x.flip(1),
    "pad": lambda x: F.pad(x, (1, 1)),
    "detach": lambda x: x.detach().exp(),
    "foreach": lambda x: torch._foreach_mul([x, x], 2),
}
# Without group_norm: PyTorch makes its input contiguous on every device but the CPU.
IMAGES: dict[str, Op] = {
    "conv": lambda x: F.conv2d(x, x[:, :, :3, :3]),
    "strided conv": lambda x: F.conv2d(x, x[:, :, :2, :2], stride=2, padding=1),
    "depthwise conv": lambda x: F.conv2d(x, x[:1].transpose(0, 1)[..., :3], groups=4),
    "transposed conv": lambda x: F.conv_transpose2d(
        x, x[:1, :, :2, :2].transpose(0, 1)
    ),
    "batch_norm": lambda x: F.batch_norm(x, x.mean((0, 2, 3)), x.var((0, 2, 3))),
    "batch_norm, training": lambda x: F.batch_norm(x, None, None, training=True),
    "max_pool": lambda x: F.max_pool2d(x, 2),
    "avg_pool": lambda x: F.avg_pool2d(x, 2),
    "adaptive pool": lambda x: F.adaptive_avg_pool2d(x, 3),
    "interpolate": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "block": lambda x: F.max_pool2d(F.relu(F.conv2d(x, x[..., :3])) + 1, 2, 1),
}
FORMATS = {
    "channels_last": lambda x: x.to(memory_format=torch.channels_last),
    "transposed": lambda x: x.transpose(-1, -2),
    "permuted": lambda x: x.permute(0, 2, 1, 3).contiguous().permute(0, 2, 1, 3),
    "with gaps": lambda x: torch.cat((x, x), -1)[..., ::2],
    "expanded": lambda x: x[:1].expand(2, *x.shape[1:]),
    "one channel repeated": lambda x: x[:, :1].expand(x.shape),
    "ambiguous": lambda x: x[:1, :1].to(memory_format=torch.channels_last),
}


@contextmanager
def named(name: str) -> Iterator[None]:
    """A failure in the block gets the name. Errors of both devices are not changed."""
    try:
        yield
    except Disagreement as error:
        error.add_note(name)
        raise
    except (RuntimeError, ValueError):
        pass


@pytest.mark.parametrize("form", FORMATS)
def test_any_op(form: str, xpu: torch.device) -> None:
    x = FORMATS[form](torch.rand(2, 4, 6, 6))
    for name, op in OPS.items():
        with named(name):
            agree(op, x)


@pytest.mark.parametrize("form", FORMATS)
def test_ops_on_images(form: str, xpu: torch.device) -> None:
    x = FORMATS[form](torch.rand(2, 4, 6, 6))
    for name, op in IMAGES.items():
        with named(name):
            agree(op, x, rtol=1e-4, atol=1e-5)


def test_volumes(xpu: torch.device) -> None:
    x = torch.rand(2, 4, 4, 6, 6).to(memory_format=torch.channels_last_3d)
    for name, op in OPS.items():
        if name != "add channels":
            with named(name):
                agree(op, x)
