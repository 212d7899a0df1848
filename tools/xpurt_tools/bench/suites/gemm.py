"""Products of matrices."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch.nn import functional as F

from xpurt_tools.bench import onednn_alone
from xpurt_tools.bench.row import Call, Reach, Row, Shape, Suite, on

SQUARES = (64, 128, 256, 512, 1024, 2048)
SHAPES: tuple[tuple[str, Callable[..., Any], tuple[Shape, ...]], ...] = (
    *((f"mm {n}", torch.mm, ((n, n), (n, n))) for n in SQUARES),
    ("mm skinny 16x2048x2048", torch.mm, ((16, 2048), (2048, 2048))),
    ("mm skinny 2048x2048x16", torch.mm, ((2048, 2048), (2048, 16))),
    ("mm skinny 2048x32x2048", torch.mm, ((2048, 32), (32, 2048))),
    ("bmm 64x64x64x64", torch.bmm, ((64, 64, 64), (64, 64, 64))),
    ("bmm 16x512x64x512", torch.bmm, ((16, 512, 64), (16, 64, 512))),
    ("linear 32x768x3072", F.linear, ((32, 768), (3072, 768), (3072,))),
    ("linear 512x768x768", F.linear, ((512, 768), (768, 768), (768,))),
)


# Over the better of MKL, which PyTorch calls in float32, and oneDNN.
MOST = 1.02


def _rows(dtype: torch.dtype) -> tuple[Row, ...]:
    return tuple(_row(name, op, shapes, dtype) for name, op, shapes in SHAPES)


def _row(
    name: str, op: Callable[..., Any], shapes: tuple[Shape, ...], dtype: torch.dtype
) -> Row:
    with_dpnp = dtype == torch.float32 and len(shapes) == 2
    row = on(name, op, *shapes, dtype=dtype, dpnp=_matmul if with_dpnp else None)
    if op is not torch.mm:
        return row
    (rows, inner), (_, columns) = shapes
    return replace(
        row,
        others={
            **row.others,
            "oneDNN": partial(_by_onednn, rows, inner, columns, dtype),
        },
        others_at_most={"oneDNN": MOST},
    )


def _by_onednn(*product: Any) -> tuple[Call, Call]:
    return onednn_alone.product(*product), lambda: None


def _matmul(np: Any, x: Any, y: Any) -> object:
    return np.matmul(x, y)


GEMM = Suite(
    "gemm",
    "f32 products: square from 64 to 2048, skinny, batched, linear with bias",
    target=MOST,
    row_limit=MOST,
    rows=_rows(torch.float32),
    reach=Reach("onednn_f32", 0.9, "mm 2048"),
)
GEMM_BF16 = Suite(
    "gemm-bf16",
    "the same in bf16",
    target=MOST,
    row_limit=MOST,
    rows=_rows(torch.bfloat16),
    reach=Reach("onednn_bf16", 0.9, "mm 2048"),
)
