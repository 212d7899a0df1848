"""linear_activation: a linear layer and its activation in one step.

With many rows, oneDNN's primitive for xpu on a CPU applies the activation to a tile of the
product while it is in the cache. With gradients, an activation whose derivative needs the values
before it (gelu, silu) is not kept: the product is computed again in the backward pass,
as a checkpoint would.
"""

from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor

from xpurt.functional.activations import trained
from xpurt.fused_ops.definition import cast_under_autocast, define
from xpurt.fused_ops.operands import (
    as_matrix,
    require,
    require_floating,
    require_same_device,
    require_same_type,
    sizes,
)

_OP = "linear_activation"
# With fewer rows the primitive's copy of the weight in its own layout takes longer than the
# activation: 1.08 of the processor time of two ops with 128 rows of 768, 0.83 with 4,096 of
# 64 (gelu, float32, one thread of an AMD EPYC, 2026-11-26).
_FEWEST_ROWS: Final = 512


def _check(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str) -> None:
    trained(_OP, activation)
    require_floating(_OP, "x", x)
    require_same_device(_OP, x=x, weight=weight, bias=bias)
    require_same_type(_OP, x=x, weight=weight, bias=bias)
    require(
        weight.dim() == 2 and x.dim() >= 1 and x.shape[-1] == weight.shape[1],
        f"{_OP} computes x (..., in) with a weight (out, in); found x {sizes(x)} and a "
        f"weight {sizes(weight)}",
    )
    require(
        bias is None or (bias.dim() == 1 and bias.shape[0] == weight.shape[0]),
        f"{_OP} with a weight {sizes(weight)} adds a bias [{weight.shape[0]}]; found "
        f"{'' if bias is None else sizes(bias)}",
    )


def _on_cpu(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "none"
) -> Tensor:
    _check(x, weight, bias, activation)
    return trained(_OP, activation).in_place(F.linear(x, weight, bias))


def _on_xpu(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "none"
) -> Tensor:
    _check(x, weight, bias, activation)
    rows, after = as_matrix(x), trained(_OP, activation)
    if not after.by_primitive or rows.shape[0] < _FEWEST_ROWS or not weight.numel():
        return after.in_place(F.linear(x, weight, bias))
    made: Tensor = torch.ops.xpurt.fused_product(
        rows,
        weight.t(),
        bias,
        None,
        [weight.shape[1], weight.shape[0]],
        activation,
        0.0,
        0.0,
    )
    return made.view(*x.shape[:-1], weight.shape[0])


def _fake(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "none"
) -> Tensor:
    _check(x, weight, bias, activation)
    return x.new_empty([*x.shape[:-1], weight.shape[0]])


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, bias, ctx.activation = inputs
    by_result = trained(_OP, ctx.activation).by_result
    ctx.save_for_backward(x, weight, bias, output if by_result else None)


def _gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, weight, bias, output = ctx.saved_tensors
    after = trained(_OP, ctx.activation)
    values = F.linear(x, weight, bias) if output is None else output
    before = after.gradient(grad, values)
    to_x, to_weight, *_ = ctx.needs_input_grad
    to_bias = bias is not None and ctx.needs_input_grad[2]
    rows = as_matrix(before)
    return (
        (rows @ weight).view(x.shape) if to_x else None,
        rows.t() @ as_matrix(x) if to_weight else None,
        rows.sum(0) if to_bias else None,
        None,
    )


def define_op() -> None:
    define(
        f"{_OP}(Tensor x, Tensor weight, Tensor? bias=None, str activation='none') "
        "-> Tensor",
        cpu=_on_cpu,
        xpu=_on_xpu,
        fake=_fake,
        save=_save,
        gradient=_gradient,
    )
    cast_under_autocast(_OP, (0, 1, 2))
