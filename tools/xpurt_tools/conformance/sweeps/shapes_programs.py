"""Programs for torch.compile: the kernels that the compiler generates."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from xpurt_tools.conformance.sweeps.shapes_cases import COMPANIONS, Call, Case, Make
from xpurt_tools.conformance.sweeps.shapes_operands import Operands

SIZES = {"line": (3, 33, 130), "outer": COMPANIONS, "inner": COMPANIONS}


def arrays(operands: int, values: str = "normal") -> Make:
    """Operands of exactly three dimensions, so that a program has one form of code."""

    def make(new: Operands, case: Case) -> tuple[Any, ...]:
        shape = case["outer"], case["line"], case["inner"]
        return tuple(new(*shape, values=values) for _ in range(operands))

    return make


@cache
def _compiled(program: Callable[..., Any], dynamic: bool) -> Callable[..., Any]:
    return torch.compile(program, dynamic=dynamic)


def _program(program: Callable[..., Any], dynamic: bool) -> Callable[..., Any]:
    def run(*inputs: Tensor) -> Any:
        if inputs[0].device.type == "cpu":
            return program(*inputs)
        if not dynamic:  # each shape is a program of its own
            torch._dynamo.reset()
        return _compiled(program, dynamic)(*inputs)

    return run


BODIES: dict[str, tuple[Callable[..., Any], int, str]] = {
    "chain": (lambda x, y: (x * 2 - y).tanh() + 0.5, 2, "normal"),
    "broadcast": (lambda x, y: x * y[:, :1] + y[:1], 2, "normal"),
    "transposed": (lambda x, y: x + y.transpose(0, 2).contiguous().transpose(0, 2) * 2,
                   2, "normal"),
    "turned": (lambda x, y: x.transpose(1, 2).contiguous() + y.transpose(1, 2), 2, "normal"),
    "sum of the line": (lambda x: (x + 1).sum(1), 1, "small"),
    "sum of the last": (lambda x: (x * 2).sum(2), 1, "small"),
    "sum of the first": (lambda x: (x - 1).sum(0), 1, "small"),
    "sum of all": (lambda x: (x + 1).sum(), 1, "small"),
    "sum of two": (lambda x: (x * 3).sum((0, 2)), 1, "small"),
    "variance": (lambda x: torch.var_mean(x, 2, correction=0), 1, "normal"),
    "variance of the line": (lambda x: torch.var_mean(x, 1, correction=0), 1, "normal"),
    "argmax": (lambda x: (x.argmax(2), x.amax(1)), 1, "distinct"),
    "softmax": (lambda x: F.softmax(x * 0.5, 2), 1, "normal"),
    "softmax of the line": (lambda x: F.softmax(x * 0.5, 1), 1, "normal"),
    "layer norm": (lambda x: F.layer_norm(x, x.shape[2:]) * 2, 1, "normal"),
    "cat": (lambda x, y: torch.cat([x * 2, y + 1], 1), 2, "normal"),
    "pad": (lambda x: F.pad(x * 2, (1, 2, 0, 1)), 1, "normal"),
    "gather": (lambda x, y: x.gather(1, (y > 0).long() % x.shape[1]) + 1, 2, "normal"),
    "scatter": (lambda x, y: x.scatter_add(1, (y > 0).long() % x.shape[1], y), 2, "small"),
    "cumsum": (lambda x: (x * 2).cumsum(1), 1, "small"),
    "reduced, then used": (lambda x: (x - x.mean(2, keepdim=True)).relu(), 1, "normal"),
}  # fmt: skip
EXACT = {name for name, (_, _, values) in BODIES.items() if values != "normal"}


def _call(name: str, dynamic: bool) -> Call:
    program, operands, values = BODIES[name]
    return Call(
        f"{name}, {'any sizes' if dynamic else 'these sizes'}",
        "compiled",
        arrays(operands, values),
        _program(program, dynamic),
        SIZES,
        (),
        rtol=0.0 if name in EXACT else 1e-4,
        most=1 << 20,
        compiled=True,
    )


PROGRAMS = tuple(_call(name, dynamic) for name in BODIES for dynamic in (True, False))
