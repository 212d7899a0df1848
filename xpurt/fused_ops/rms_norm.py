"""rms_norm_add: the sum with a residual, and its RMS norm (Zhang and Sennrich, Root mean
square layer normalization, 2019).

For s = x + residual of n elements in a line,

    normed = s * r * weight,    r = 1 / sqrt(mean(s^2) + eps)

and with g = grad_normed * weight

    grad_s      = r * g - s * r^3 * sum(g * s) / n + grad_added
    grad_weight = sum over lines of grad_normed * s * r

Only s is kept for the gradients, and it is a result.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from xpurt.fused_ops.definition import define, differentiable_gradients
from xpurt.fused_ops.operands import (
    as_matrix,
    computed_in,
    require,
    require_floating,
    require_same_device,
    sizes,
)

_OP = "rms_norm_add"
EPS = 1e-6


def _check(x: Tensor, residual: Tensor | None, weight: Tensor) -> None:
    require_floating(_OP, "x", x)
    require_floating(_OP, "weight", weight)
    require_same_device(_OP, x=x, residual=residual, weight=weight)
    require(
        x.dim() >= 1 and weight.dim() == 1 and weight.shape[0] == x.shape[-1],
        f"{_OP} normalizes the last dimension of x, with a weight of its size; found x "
        f"{sizes(x)} and a weight {sizes(weight)}",
    )
    if residual is not None:
        require_floating(_OP, "residual", residual)
        require(
            residual.shape == x.shape,
            f"{_OP} adds a residual of the sizes of x; found x {sizes(x)} and a residual "
            f"{sizes(residual)}. Expand it",
        )


def _type_of(x: Tensor, residual: Tensor | None) -> torch.dtype:
    return x.dtype if residual is None else torch.promote_types(x.dtype, residual.dtype)


def _empty(like: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.empty(like.shape, dtype=dtype, device=like.device)


def _normed(added: Tensor, weight: Tensor, eps: float) -> Tensor:
    if weight.dtype == added.dtype:
        return F.rms_norm(added, weight.shape, weight, eps)
    values = added.to(computed_in(added.dtype))
    scale = torch.rsqrt(values.square().mean(-1, keepdim=True) + eps)
    return (values * scale * weight).to(added.dtype)


def _by_ops(
    x: Tensor, residual: Tensor | None, weight: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    added = x.clone() if residual is None else x + residual
    return _normed(added, weight, eps), added


def _on_cpu(
    x: Tensor, residual: Tensor | None, weight: Tensor, eps: float = EPS
) -> tuple[Tensor, Tensor]:
    _check(x, residual, weight)
    normed, added = _by_ops(x.contiguous(), residual, weight, eps)
    return normed.contiguous(), added.contiguous()


def _on_xpu(
    x: Tensor, residual: Tensor | None, weight: Tensor, eps: float = EPS
) -> tuple[Tensor, Tensor]:
    normed, added = _fake(x, residual, weight, eps)
    if x.numel():
        dtype = added.dtype
        torch.ops.xpurt.rms_norm_add_out(
            as_matrix(x).to(dtype),
            None if residual is None else as_matrix(residual).to(dtype),
            weight,
            eps,
            as_matrix(normed),
            as_matrix(added),
        )
    return normed, added


def _fake(
    x: Tensor, residual: Tensor | None, weight: Tensor, eps: float = EPS
) -> tuple[Tensor, Tensor]:
    _check(x, residual, weight)
    dtype = _type_of(x, residual)
    return _empty(x, dtype), _empty(x, dtype)


def _gradients_on_cpu(
    grad_normed: Tensor,
    grad_added: Tensor | None,
    added: Tensor,
    weight: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    dtype = computed_in(added.dtype)
    values, scaled = added.to(dtype), grad_normed.to(dtype)
    scale = torch.rsqrt(values.square().mean(-1, keepdim=True) + eps)
    unit = values * scale
    to_weight = as_matrix(scaled * unit).sum(0)
    scaled = scaled * weight
    share = (scaled * unit).mean(-1, keepdim=True)
    to_x = (scaled - unit * share) * scale
    if grad_added is not None:
        to_x = to_x + grad_added
    return to_x.to(added.dtype).contiguous(), to_weight.to(weight.dtype)


def _gradients_on_xpu(
    grad_normed: Tensor,
    grad_added: Tensor | None,
    added: Tensor,
    weight: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    to_x = _empty(added, added.dtype)
    if not added.numel():
        return to_x, torch.zeros_like(weight)
    to_weight = torch.empty_like(weight)
    torch.ops.xpurt.rms_norm_add_backward_out(
        as_matrix(grad_normed).to(added.dtype),
        None if grad_added is None else as_matrix(grad_added).to(added.dtype),
        as_matrix(added),
        weight,
        eps,
        as_matrix(to_x),
        to_weight,
    )
    return to_x, to_weight


def _fake_gradients(
    grad_normed: Tensor,
    grad_added: Tensor | None,
    added: Tensor,
    weight: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    return _empty(added, added.dtype), torch.empty_like(weight)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, residual, weight, ctx.eps = inputs
    ctx.types = x.dtype, None if residual is None else residual.dtype
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(output[1], weight)


def _gradient(ctx: Any, grad_normed: Tensor | None, grad_added: Tensor | None) -> Any:
    added, weight = ctx.saved_tensors
    if grad_normed is None:
        to_added, to_weight = grad_added, None
    elif torch.is_grad_enabled():
        to_added, to_weight = differentiable_gradients(
            lambda a, w: _normed(a, w, ctx.eps), (added, weight), (grad_normed,)
        )
        if grad_added is not None:
            to_added = grad_added if to_added is None else to_added + grad_added
    else:
        to_added, to_weight = torch.ops.xpurt.rms_norm_add_backward(
            grad_normed, grad_added, added, weight, ctx.eps
        )
    to_x, to_residual = (
        to_added.to(dtype) if to_added is not None and needed else None
        for dtype, needed in zip(ctx.types, ctx.needs_input_grad, strict=False)
    )
    return to_x, to_residual, to_weight if ctx.needs_input_grad[2] else None, None


def define_op() -> None:
    define(
        f"{_OP}(Tensor x, Tensor? residual, Tensor weight, float eps={EPS}) "
        "-> (Tensor, Tensor)",
        cpu=_on_cpu,
        xpu=_on_xpu,
        fake=_fake,
        save=_save,
        gradient=_gradient,
    )
    define(
        f"{_OP}_backward(Tensor grad_normed, Tensor? grad_added, Tensor added, "
        "Tensor weight, float eps) -> (Tensor, Tensor)",
        cpu=_gradients_on_cpu,
        xpu=_gradients_on_xpu,
        fake=_fake_gradients,
    )
