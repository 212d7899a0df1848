"""Reductions, normalizations and scans, along lines and across them."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from xpurt_tools.bench.row import Row, Suite, on

SQUARES = {"1M": (1024, 1024), "16M": (4096, 4096)}
DIMS = {"inner": 1, "outer": 0}


def _each(
    name: str,
    op: Callable[..., Any],
    dpnp: Callable[..., object] | None = None,
    *,
    slow: bool = False,
) -> list[Row]:
    """The row for each size and each dimension; `op` takes a tensor and the dim."""
    return [
        on(
            f"{name} {size} {place}",
            lambda x, dim=dim: op(x, dim),
            shape,
            dpnp=None if dpnp is None else lambda np, x, dim=dim: dpnp(np, x, dim),
            long=slow and size == "16M",
        )
        for size, shape in SQUARES.items()
        for place, dim in DIMS.items()
    ]


REDUCE = Suite(
    "reduce",
    "sums, moments, softmax, layer_norm, argmax, cumsum on 1M and 16M, inner and outer",
    target=0.8,
    neutral_target=1.0,
    rows=(
        *_each("sum", torch.sum, lambda np, x, dim: np.sum(x, axis=dim)),
        *_each("mean", torch.mean, lambda np, x, dim: np.mean(x, axis=dim)),
        *_each(
            "var", torch.var, lambda np, x, dim: np.var(x, axis=dim, ddof=1), slow=True
        ),
        *_each("softmax", torch.softmax),
        # There is no outer form: it normalizes the last dimensions.
        *(
            on(
                f"layer_norm {size} inner",
                lambda x: F.layer_norm(x, x.shape[1:]),
                shape,
            )
            for size, shape in SQUARES.items()
        ),
        *_each(
            "argmax", torch.argmax, lambda np, x, dim: np.argmax(x, axis=dim), slow=True
        ),
        *_each(
            "cumsum", torch.cumsum, lambda np, x, dim: np.cumsum(x, axis=dim), slow=True
        ),
    ),
)
