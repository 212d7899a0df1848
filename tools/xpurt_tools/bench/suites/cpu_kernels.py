"""CPU tensors in xpurt's kernels where these are faster, and in PyTorch's."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

import xpurt
from xpurt.errors import MappingError
from xpurt_tools.bench.row import Row, Suite, Unavailable, Work, drawn

SHAPE = (4096, 4096)
# PyTorch's kernel computes while the row is built. Then three rounds of four calls are
# measured, and the faster one is taken.
CALLS_UNTIL_CHOSEN = 20


def kernel_row(
    name: str,
    op: Callable[[Tensor], Tensor],
    dtype: torch.dtype,
    at_most: float,
    shape: tuple[int, ...] = SHAPE,
) -> Row:
    def prepare(mode: str, device: torch.device) -> Work:
        (x,) = drawn((shape,), dtype)

        def call() -> Tensor:
            # Setting the kernels takes a third of a millisecond; the op, much longer.
            with xpurt.cpu_kernels(mode):
                return op(x)

        try:
            for _ in range(CALLS_UNTIL_CHOSEN if mode == "auto" else 1):
                call()
        except MappingError as error:
            raise Unavailable(str(error)) from None
        return Work(call, elements=x.numel())

    auto, native = partial(prepare, "auto"), partial(prepare, "native")
    return Row(name, auto, native, at_most=at_most, long=True)


F32, BF16 = torch.float32, torch.bfloat16

CPU_KERNELS = Suite(
    "cpu-kernels",
    'CPU tensors under xpurt.cpu_kernels("auto"), and under "native"',
    target=0.5,
    processor=True,
    beside="native",
    only_by_name=True,
    rows=(
        kernel_row("var of rows", lambda x: x.var(1), F32, 0.2),
        kernel_row("var of columns", lambda x: x.var(0), F32, 0.3),
        kernel_row("var bf16", torch.var, BF16, 0.2),
        kernel_row("cumsum along the outer dimension", lambda x: x.cumsum(0), F32, 0.6),
        kernel_row("tanh bf16", torch.tanh, BF16, 0.4),
        kernel_row("pow f32, 2.5", lambda x: x.pow(2.5), F32, 0.7),
    ),
)
