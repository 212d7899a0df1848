"""The cases that the suite `auto` times, and their limits."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from xpurt_tools.bench.auto.case import AutoCase, Limit
from xpurt_tools.bench.auto.training import GROUP, STEPS, step
from xpurt_tools.bench.row import SEED, Call
from xpurt_tools.bench.suites.dispatch import DISPATCH

CHAIN = 4
SIDE, SMALL_SIDE = 512, 256
ADDITIONS = 1000

# 1.6 times as fast as the better device.
OVERLAPS = Limit(1 / 1.6)
TOGETHER = Limit(1 / 0.90, together=True)
NO_SLOWER = Limit(1.02, ("CPU",))


def _chains(count: int, side: int) -> Call:
    """Chains of products, independent of each other, submitted alternately. The
    products neither vanish nor overflow."""
    torch.manual_seed(SEED)
    starts, factors = (
        [(torch.randn(side, side) / side**0.5).to("xpu") for _ in range(count)]
        for _ in range(2)
    )

    def call() -> object:
        now = list(starts)
        for _ in range(CHAIN):
            now = [a @ b for a, b in zip(now, factors, strict=True)]
        return now

    return call


def _pointwise_chains(count: int, elements: int) -> Call:
    starts = [torch.rand(elements).to("xpu") for _ in range(count)]

    def call() -> object:
        now = list(starts)
        for _ in range(CHAIN):
            now = [each.tanh() for each in now]
        return now

    return call


def _op(op: Callable[..., object], *shapes: tuple[int, ...]) -> Callable[[], Call]:
    """One op on tensors of these shapes."""

    def prepare() -> Call:
        torch.manual_seed(SEED)
        tensors = [torch.randn(shape).to("xpu") for shape in shapes]
        return lambda: op(*tensors)

    return prepare


def _convolution_gradients() -> Call:
    torch.manual_seed(SEED)
    shapes = (32, 64, 56, 56), (64, 64, 3, 3)
    x, w = (torch.randn(shape).to("xpu").requires_grad_() for shape in shapes)
    y = F.conv2d(x, w, padding=1)
    grad = torch.randn(y.shape).to("xpu")
    return lambda: torch.autograd.grad(y, (x, w), grad, retain_graph=True)


def _pointwise(elements: int) -> Call:
    x = torch.linspace(0, 1, elements).to("xpu")

    def call() -> object:
        y = x * 2
        for _ in range(3):
            y = (y + x) * 0.5
        return y

    return call


def _mixed_chain() -> Call:
    """Ops with different best proportions, by rows: the boundary stays."""
    torch.manual_seed(SEED)
    x, w = torch.randn(4096, 1024).to("xpu"), torch.randn(1024, 1024).to("xpu") / 32

    def call() -> object:
        y = x
        for _ in range(3):
            y = torch.softmax(F.gelu(y @ w), -1)
        return y

    return call


def _one_element() -> Call:
    x = torch.ones(1, device="xpu")

    def call() -> object:
        y = x
        for _ in range(ADDITIONS):
            y = y + x
        return y

    return call


def _small_ops() -> Call:
    """Every row of the suite `dispatch` once: the time is the host's."""
    device = torch.device("xpu", torch.xpu.current_device())
    calls = [row.prepare(device).call for row in DISPATCH.rows]

    def call() -> object:
        return [each() for each in calls]

    return call


def _product(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


CO_EXECUTED: dict[str, Callable[[], Call]] = {
    "matmul 2048": _op(_product, (2048, 2048), (2048, 2048)),
    "matmul 1536": _op(_product, (1536, 1536), (1536, 1536)),
    "batched matmul 64 x 256": _op(_product, (64, 256, 256), (64, 256, 256)),
    "softmax 8192 x 1024": _op(lambda x: x.softmax(-1), (8192, 1024)),
    "convolution 32 x 64 x 56": _op(
        lambda x, w: F.conv2d(x, w, padding=1), (32, 64, 56, 56), (64, 64, 3, 3)
    ),
    "convolution 32 x 64 x 56, backward": _convolution_gradients,
    "attention 8 x 8 x 512 x 64": _op(
        F.scaled_dot_product_attention, *[(8, 8, 512, 64)] * 3
    ),
    "sum of rows, 8192 x 2048": _op(lambda x: x.sum(-1), (8192, 2048)),
    "pointwise chain on 64M": lambda: _pointwise(64 << 20),
    "pointwise chain on 24M": lambda: _pointwise(24 << 20),
    "matmul, gelu and softmax chain": _mixed_chain,
}

CASES: tuple[AutoCase, ...] = (
    *STEPS,
    AutoCase(
        f"two chains of matmul {SIDE}", lambda: _chains(2, SIDE), OVERLAPS, calls=3
    ),
    AutoCase(
        f"three chains of matmul {SMALL_SIDE}",
        lambda: _chains(3, SMALL_SIDE),
        OVERLAPS,
        calls=10,
    ),
    AutoCase(
        "two chains of tanh on 4M", lambda: _pointwise_chains(2, 4 << 20), OVERLAPS
    ),
    *(AutoCase(name, make, TOGETHER) for name, make in CO_EXECUTED.items()),
    AutoCase(
        f"two chains of matmul {SIDE}, GPU 20 times slower",
        lambda: _chains(2, SIDE),
        NO_SLOWER,
        slow_gpu=20,
        kernels=2 * CHAIN,
        calls=3,
    ),
    AutoCase(
        "MLP step, GPU 20 times slower",
        lambda: step("MLP", 512),
        NO_SLOWER,
        slow_gpu=20,
        kernels=30,
    ),
    AutoCase("MLP step, one device", lambda: step("MLP", 512), NO_SLOWER, "AUTO:CPU"),
    AutoCase(
        "ns added per op, one device",
        _one_element,
        Limit(150, ("CPU",), added_ns=ADDITIONS),
        "AUTO:CPU",
        calls=5,
    ),
    AutoCase(
        "ns added per op, two devices",
        _one_element,
        Limit(150, ("CPU",), added_ns=ADDITIONS),
        calls=5,
    ),
    AutoCase(
        "ns added per op of the suite dispatch, one device",
        _small_ops,
        Limit(150, ("CPU",), added_ns=len(DISPATCH.rows)),
        "AUTO:CPU",
        calls=50,
    ),
)

# Limits of a group's geometric mean of AUTO's time over that of the best single device.
GROUP_LIMITS = {GROUP: 0.95}
