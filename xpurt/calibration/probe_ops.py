"""The probe ops: one op per cost class, by which the class is measured, on a given
number of elements.

Elements are counted as the policy counts them: those of the largest operand, or, for
matrix products, multiply-adds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch

from xpurt.kernels import OPS_OF_THEIR_OWN

aten = torch.ops.aten

Call = Callable[[], object]
# Makes operands of about n elements of a type on a device: the call, and the exact
# number.
Maker = Callable[[int, torch.dtype, str], tuple[Call, int]]

LETTERS: dict[str, torch.dtype] = {
    "f": torch.float32,
    "d": torch.float64,
    "h": torch.float16,
    "b": torch.bfloat16,
    "l": torch.int64,
}
# The lengths of lines of the layouts "alike" and "long".
_LINE = 256
_LONG_LINE = 2048
_DRAWN = 1 << 15


@dataclass(frozen=True, slots=True)
class ProbeOp:
    """`make` makes a call of an op of the class. `letters`: the element types that are
    measured. `smallest`, `largest`: the binary logarithms of the smallest and the
    largest number of elements; `step`: the difference between two sizes."""

    cost_class: str
    make: Maker
    letters: str = "f"
    layout: str = "alike"
    smallest: int = 11
    largest: int = 22
    step: int = 2


@cache
def _some(dtype: torch.dtype) -> torch.Tensor:
    """Numbers that are repeated: to draw millions takes longer than the ops."""
    if dtype == torch.int64:
        return torch.randint(1, 100, (_DRAWN,))
    return torch.rand(_DRAWN).add(0.5).to(dtype)


def numbers(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> torch.Tensor:
    count = math.prod(shape)
    drawn = _some(dtype).repeat(-(-count // _DRAWN))
    return drawn[:count].reshape(shape).to(device)


def lines(
    n: int, dtype: torch.dtype, device: str, *, line: int = _LINE
) -> torch.Tensor:
    return numbers((max(n // line, 1), line), dtype, device)


def of_one(op: Callable[..., object], *arguments: object, line: int = _LINE) -> Maker:
    """An op on the lines of a matrix."""

    def make(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
        x = lines(n, dtype, device, line=line)
        return lambda: op(x, *arguments), x.numel()

    return make


def of_two(op: Callable[..., object]) -> Maker:
    """An op on two matrices of such lines."""

    def make(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
        x, y = lines(n, dtype, device), lines(n, dtype, device)
        return lambda: op(x, y), x.numel()

    return make


def of_images(op: Callable[..., object], *arguments: object) -> Maker:
    """An op on images of 32 x 32."""

    def make(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
        x = numbers((1, max(n // 1024, 1), 32, 32), dtype, device)
        return lambda: op(x, *arguments), x.numel()

    return make


def of_its_own(name: str) -> ProbeOp:
    """An op with a class of its own: its kernel in PyTorch costs like no other's."""
    op = getattr(aten, name)
    overload = getattr(op, op.overloads()[0])
    kinds = [str(argument.type) for argument in overload._schema.arguments]
    make = of_one(op) if kinds.count("Tensor") == 1 else of_two(op)
    return ProbeOp(name, make, letters="fb", smallest=13, largest=21, step=4)


def add(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
    x, y = lines(n, dtype, device), lines(n, dtype, device)
    return lambda: aten.add.Tensor(x, y), x.numel()


def add_row(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
    x, y = lines(n, dtype, device), numbers((_LINE,), dtype, device)
    return lambda: aten.add.Tensor(x, y), x.numel()


def add_transposed(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
    side = math.isqrt(n)
    x, y = numbers((side, side), dtype, device), numbers((side, side), dtype, device)
    return lambda: aten.add.Tensor(x, y.t()), side * side


def square(n: int, dtype: torch.dtype, device: str) -> torch.Tensor:
    """A matrix whose product with another one has about n multiply-adds. Odd sides, for
    which products are slower, are rare."""
    side = 8 * round(n ** (1 / 3) / 8)
    return numbers((side, side), dtype, device)


def multiply(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
    x, y = square(n, dtype, device), square(n, dtype, device)
    return lambda: aten.mm(x, y), len(x) ** 3


def multiply_transposed(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
    """As a linear layer does with its weight."""
    x, y = square(n, dtype, device), square(n, dtype, device)
    return lambda: aten.mm(x, y.t()), len(x) ** 3


def convolve(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
    channels, window = 32, 3
    side = max(round(math.sqrt(n / (channels * channels * window**2))), window)
    x = numbers((1, channels, side, side), dtype, device)
    weight = numbers((channels, channels, window, window), dtype, device)
    return (
        lambda: torch.nn.functional.conv2d(x, weight, padding=1),
        side * side * weight.numel(),
    )


def attend(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
    heads, size = 8, 64
    tokens = max(math.isqrt(n // (heads * size)), 1)
    x = numbers((1, heads, tokens, size), dtype, device)
    op = aten._scaled_dot_product_flash_attention_for_cpu
    return lambda: op(x, x, x), heads * tokens * tokens * size


def draw(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
    x = lines(n, dtype, device)
    return lambda: aten.normal_(x), x.numel()


def batch_norm(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
    channels = 32
    x = numbers((4, channels, max(n // (4 * channels), 1)), dtype, device)
    weight, bias, mean, var = (numbers((channels,), dtype, device) for _ in range(4))
    return (
        lambda: aten.native_batch_norm(x, weight, bias, mean, var, True, 0.1, 1e-5),
        x.numel(),
    )


def group_norm(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
    channels, groups = 32, 8
    length = max(n // (4 * channels), 1)
    x = numbers((4, channels, length), dtype, device)
    weight, bias = (numbers((channels,), dtype, device) for _ in range(2))
    return (
        lambda: aten.native_group_norm(
            x, weight, bias, 4, channels, length, groups, 1e-5
        ),
        x.numel(),
    )


def layer_norm(line: int) -> Maker:
    def make(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
        x = lines(n, dtype, device, line=line)
        weight, bias = numbers((line,), dtype, device), numbers((line,), dtype, device)
        return lambda: aten.native_layer_norm(x, [line], weight, bias, 1e-5), x.numel()

    return make


def on_long_lines(
    cost_class: str, op: Callable[..., object], *arguments: object, letters: str = "f"
) -> ProbeOp:
    make = of_one(op, *arguments, line=_LONG_LINE)
    return ProbeOp(cost_class, make, letters, layout="long", smallest=13)


def variance(x: torch.Tensor, dim: int) -> torch.Tensor:
    found: torch.Tensor = aten.var.correction(x, [dim])
    return found


def gather(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
    x = lines(n, dtype, device)
    index = torch.randint(x.shape[0], (x.shape[0],)).to(device)
    return lambda: aten.index_select(x, 0, index), x.numel()


def index(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
    x = lines(n, dtype, device)
    rows = torch.randint(x.shape[0], (x.shape[0],)).to(device)
    return lambda: aten.index.Tensor(x, [rows]), x.numel()


def scatter(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
    x, source = lines(n, dtype, device), lines(n, dtype, device)
    index = torch.randint(x.shape[0], (x.shape[0],)).to(device)
    return lambda: aten.index_add(x, 0, index, source), x.numel()


def nll_loss(n: int, dtype: torch.dtype, device: str) -> tuple[Call, int]:
    x = lines(n, dtype, device)
    target = torch.randint(_LINE, (x.shape[0],)).to(device)
    return lambda: aten.nll_loss_forward(x, target, None, 1, -100), x.numel()


# Sorts are missing, and other ops that choose one of several equal elements. PyTorch's
# kernels choose another one than xpurt's, and a choice of a tier by cost must not
# change results.
PROBE_OPS = (
    ProbeOp("cheap", add, letters="fbdl"),
    ProbeOp("cheap", add_row, layout="mixed"),
    ProbeOp("cheap", add_transposed, layout="strided"),
    ProbeOp("dear", of_one(aten.exp), letters="fbd"),
    *map(of_its_own, OPS_OF_THEIR_OWN),
    ProbeOp("special", of_one(aten.digamma), largest=20),
    ProbeOp("incomplete_gamma", of_two(aten.igamma), largest=20),
    ProbeOp("modified_bessel", of_one(aten.special_modified_bessel_i1), largest=20),
    ProbeOp("polynomials", of_two(aten.special_hermite_polynomial_h), largest=20),
    ProbeOp("reduction", of_one(aten.sum.dim_IntList, [1]), letters="fbdl"),
    ProbeOp("reduction", of_one(aten.sum.dim_IntList, [0]), layout="across"),
    on_long_lines("reduction", aten.sum.dim_IntList, [1], letters="fb"),
    ProbeOp("softmax", of_one(aten._softmax, 1, False), letters="fb"),
    ProbeOp("softmax", of_one(aten._softmax, 0, False), layout="across"),
    on_long_lines("softmax", aten._softmax, 1, False, letters="fb"),
    ProbeOp("matmul", multiply, letters="fbhd", smallest=15, largest=29),
    ProbeOp(
        "matmul",
        multiply_transposed,
        letters="fb",
        layout="strided",
        smallest=15,
        largest=29,
    ),
    ProbeOp("convolution", convolve, smallest=18, largest=27),
    ProbeOp("attention", attend, letters="fb", smallest=16, largest=28),
    ProbeOp("draws", draw),
    ProbeOp("batch_norm", batch_norm, layout="across"),
    ProbeOp("channel_norm", group_norm),
    ProbeOp("line_norm", layer_norm(_LINE), letters="fb"),
    ProbeOp(
        "line_norm", layer_norm(_LONG_LINE), letters="fb", layout="long", smallest=13
    ),
    ProbeOp("pooling", of_images(aten.max_pool2d_with_indices, [2, 2], [2, 2])),
    ProbeOp("averaging", of_images(aten.avg_pool2d, [2, 2])),
    ProbeOp(
        "upsampling", of_images(aten.upsample_bilinear2d, [64, 64], False), largest=20
    ),
    ProbeOp("extremes", of_one(aten.argmax, 1), letters="fb"),
    ProbeOp("extremes", of_one(aten.argmax, 0), layout="across"),
    on_long_lines("extremes", aten.argmax, 1, letters="fb"),
    ProbeOp("gathering", gather),
    ProbeOp("indexing", index),
    ProbeOp("scattering", scatter),
    ProbeOp("scan", of_one(aten.cumsum, 1)),
    ProbeOp("scan", of_one(aten.cumsum, 0), layout="across"),
    ProbeOp("padding", of_images(aten.reflection_pad2d, [1, 1, 1, 1])),
    ProbeOp("rearranging", of_one(aten.flip, [0])),
    ProbeOp("losses", nll_loss),
    ProbeOp("moments", of_one(variance, 1)),
    ProbeOp("moments", of_one(variance, 0), layout="across"),
    on_long_lines("moments", variance, 1),
)
