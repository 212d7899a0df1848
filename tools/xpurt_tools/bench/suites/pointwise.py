"""Pointwise ops: half of them cheap, half of them transcendental."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F

from xpurt_tools.bench.row import Reach, Row, Suite, on


@dataclass(frozen=True, slots=True)
class Op:
    name: str
    of: Callable[..., Any]
    operands: int
    dpnp: Callable[..., object] | None = None


OPS = (
    Op("add", torch.add, 2, lambda np, x, y: np.add(x, y)),
    Op("mul", torch.mul, 2, lambda np, x, y: np.multiply(x, y)),
    Op("div", torch.div, 2, lambda np, x, y: np.divide(x, y)),
    Op("relu", torch.relu, 1),
    Op("clamp", lambda x: x.clamp(0.6, 1.2), 1, lambda np, x: np.clip(x, 0.6, 1.2)),
    Op("addcmul", torch.addcmul, 3),
    Op("exp", torch.exp, 1, lambda np, x: np.exp(x)),
    Op("log", torch.log, 1, lambda np, x: np.log(x)),
    Op("sin", torch.sin, 1, lambda np, x: np.sin(x)),
    Op("tanh", torch.tanh, 1, lambda np, x: np.tanh(x)),
    Op("gelu", F.gelu, 1),
    Op("pow", torch.pow, 2, lambda np, x, y: np.power(x, y)),
)

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def _rows(elements: int) -> tuple[Row, ...]:
    return tuple(
        on(
            f"{op.name} {name}",
            op.of,
            *[(elements,)] * op.operands,
            dtype=dtype,
            dpnp=op.dpnp if dtype == torch.float32 else None,
        )
        for name, dtype in DTYPES.items()
        for op in OPS
    )


POINTWISE = (
    Suite(
        "pointwise-64k",
        "12 ops on 64K elements, f32 and bf16, cheap and transcendental",
        target=1.2,
        rows=_rows(64 << 10),
    ),
    Suite("pointwise-1m", "the same on 1M", target=0.85, rows=_rows(1 << 20)),
    Suite(
        "pointwise-16m",
        "the same on 16M",
        target=0.3,
        neutral_target=1.0,
        rows=_rows(16 << 20),
        reach=Reach("triad", 0.85),
    ),
)
