"""The overhead of an op before it computes: tiny tensors, views, indexing."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from xpurt_tools.bench.row import Row, Suite, on

SIDES = {1: 1, 1024: 32}  # of the square matrix with this many elements


def _each(
    name: str, op: Callable[..., Any], operands: int, **options: Any
) -> list[Row]:
    """The row for each size."""
    return [on(f"{name} {n}", op, *[(n,)] * operands, **options) for n in SIDES]


def _put(x: Tensor, y: Tensor) -> None:
    x[3:5] = y


def _add_mul_sum(x: Tensor, y: Tensor) -> object:
    return torch.autograd.grad(((x + y) * y).sum(), (x, y))


TWELVE = (
    *_each("add", torch.add, 2, dpnp=lambda np, x, y: np.add(x, y)),
    *_each("add scalar", lambda x: x + 1.0, 1, dpnp=lambda np, x: x + 1.0),
    *_each("mul_", lambda x: x.mul_(1.0), 1),
    *_each("mul out", lambda x, y, out: torch.mul(x, y, out=out), 3),
    *_each("exp", torch.exp, 1, dpnp=lambda np, x: np.exp(x)),
    *_each("relu", torch.relu, 1),
    *_each("sum", lambda x: x.sum(0), 1, dpnp=lambda np, x: x.sum(0)),
    *_each("softmax", lambda x: x.softmax(0), 1),
    *(on(f"mm {n}", torch.mm, (k, k), (k, k)) for n, k in SIDES.items()),
    *_each("cat", lambda x, y: torch.cat((x, y)), 2),
    *_each("zeros_like", torch.zeros_like, 1),
    *_each("copy_", lambda x, y: x.copy_(y), 2),
)

WITH_GRAD = (
    *_each("add, grad", torch.add, 2, grad=True),
    *_each("exp, grad", torch.exp, 1, grad=True),
    *_each("relu, grad", torch.relu, 1, grad=True),
    *_each("sum, grad", lambda x: x.sum(0), 1, grad=True),
    *_each("softmax, grad", lambda x: x.softmax(0), 1, grad=True),
    *(
        on(f"mm, grad {n}", torch.mm, (k, k), (k, k), grad=True)
        for n, k in SIDES.items()
    ),
    *_each("cat, grad", lambda x, y: torch.cat((x, y)), 2, grad=True),
    *_each("add mul sum, backward", _add_mul_sum, 2, grad=True),
)

VIEWS = (
    on("x[0]", lambda x: x[0], (32, 32)),
    on("x[2:5]", lambda x: x[2:5], (32, 32)),
    on("x.view", lambda x: x.view(1024), (32, 32)),
    on("x.t()", lambda x: x.t(), (32, 32)),
    on("x.expand", lambda x: x.expand(8, 32), (1, 32)),
    on("x.unsqueeze", lambda x: x.unsqueeze(0), (32, 32)),
    on("x[0], grad", lambda x: x[0], (32, 32), grad=True),
    on("x.view, grad", lambda x: x.view(1024), (32, 32), grad=True),
)

# Values of the rows lie between 0.5 and 1.5: as indices they are 0 and 1.
INDEXING = (
    on("x[indices]", lambda x, i: x[i.long()], (32, 32), (16,)),
    on("x[mask]", lambda x: x[x > 1], (32, 32)),
    on("x[3:5] = y", _put, (32, 32), (2, 32)),
    on("index_select", lambda x, i: x.index_select(0, i.long()), (32, 32), (16,)),
    on("gather", lambda x, i: x.gather(1, i.long()), (32, 32), (32, 4)),
    on("where", lambda x, y: torch.where(x > 1, x, y), (1024,), (1024,)),
)

DISPATCH = Suite(
    "dispatch",
    "ops on 1 and 1,024 elements, views, indexing, without and with grad",
    target=1.0,
    row_limit=1.25,
    rows=(*TWELVE, *WITH_GRAD, *VIEWS, *INDEXING),
)
