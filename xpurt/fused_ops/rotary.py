"""rotary_embedding: rotates pairs of elements of queries and keys by angles that depend on
their positions (Su et al., RoFormer, 2021).

The pair (a, b) becomes (a cos - b sin, b cos + a sin). Interleaved, the pairs are adjacent
elements, as in the paper; otherwise an element of the first half of the rotated ones and
its counterpart in the second half, as in GPT-NeoX and Llama. The gradient is the rotation
by the opposite angles.
"""

from typing import Any

import torch
from torch import Tensor

from xpurt.fused_ops.definition import define
from xpurt.fused_ops.operands import (
    computed_in,
    require,
    require_floating,
    require_same_device,
    require_same_type,
    sizes,
    with_adjacent_elements,
)

_OP = "rotary_embedding"


def _check(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> None:
    for name, each in (("q", q), ("k", k), ("cos", cos), ("sin", sin)):
        require_floating(_OP, name, each)
        require(
            1 <= each.dim() <= 8,
            f"{_OP} has operands of 1 to 8 dimensions; found `{name}` {sizes(each)}. "
            "Flatten those that the angles do not depend on",
        )
    require_same_device(_OP, q=q, k=k, cos=cos, sin=sin)
    require_same_type(_OP, q=q, k=k)
    require_same_type(_OP, cos=cos, sin=sin)
    require(
        cos.shape == sin.shape,
        f"{_OP} has `cos` and `sin` of the same sizes; found {sizes(cos)} and "
        f"{sizes(sin)}",
    )
    for name, each in (("q", q), ("k", k)):
        _check_angles(name, each, cos)


def _check_angles(name: str, x: Tensor, cos: Tensor) -> None:
    pairs = cos.shape[-1]
    fits = 2 * pairs <= x.shape[-1] and cos.dim() <= x.dim()
    for size, wanted in zip(
        reversed(cos.shape[:-1]), reversed(x.shape[:-1]), strict=False
    ):
        fits = fits and (size == 1 or size == wanted)
    require(
        fits,
        f"{_OP} has an angle per pair of the rotated elements: `cos` broadcasts to "
        f"{[*x.shape[:-1], 'pairs']}, with 2 * pairs <= {x.shape[-1]}; found {sizes(cos)} "
        f"for `{name}` {sizes(x)}",
    )


def _pairs(x: Tensor, pairs: int, interleaved: bool) -> tuple[Tensor, Tensor]:
    """Views of the first and the second elements."""
    if interleaved:
        return x[..., 0 : 2 * pairs : 2], x[..., 1 : 2 * pairs : 2]
    return x[..., :pairs], x[..., pairs : 2 * pairs]


def _rotated_on_cpu(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    pairs, dtype = cos.shape[-1], computed_in(x.dtype)
    out = torch.empty(x.shape, dtype=dtype, device=x.device)
    cos, sin, values = cos.to(dtype), sin.to(dtype), x.to(dtype)
    a, b = _pairs(values, pairs, interleaved)
    to_a, to_b = _pairs(out, pairs, interleaved)
    torch.mul(a, cos, out=to_a).addcmul_(b, sin, value=-1)
    torch.mul(b, cos, out=to_b).addcmul_(a, sin)
    return _with_rest(out, values, pairs).to(x.dtype)


def _rotated_on_xpu(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    pairs = cos.shape[-1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() and pairs:
        angles = [each.expand(*x.shape[:-1], pairs) for each in (cos, sin)]
        x, *angles = (with_adjacent_elements(each) for each in (x, *angles))
        torch.ops.xpurt.rotate_out(x, *angles, interleaved, out)
    return _with_rest(out, x, pairs)


def _with_rest(out: Tensor, x: Tensor, pairs: int) -> Tensor:
    if 2 * pairs < x.shape[-1]:
        out[..., 2 * pairs :] = x[..., 2 * pairs :]
    return out


def _on_cpu(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False
) -> tuple[Tensor, Tensor]:
    _check(q, k, cos, sin)
    return (
        _rotated_on_cpu(q, cos, sin, interleaved),
        _rotated_on_cpu(k, cos, sin, interleaved),
    )


def _on_xpu(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False
) -> tuple[Tensor, Tensor]:
    _check(q, k, cos, sin)
    return (
        _rotated_on_xpu(q, cos, sin, interleaved),
        _rotated_on_xpu(k, cos, sin, interleaved),
    )


def _fake(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False
) -> tuple[Tensor, Tensor]:
    _check(q, k, cos, sin)
    return (
        torch.empty(q.shape, dtype=q.dtype, device=q.device),
        torch.empty(k.shape, dtype=k.dtype, device=k.device),
    )


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    q, k, cos, sin, ctx.interleaved = inputs
    to_angles = ctx.needs_input_grad[2] or ctx.needs_input_grad[3]
    ctx.save_for_backward(cos, sin, *((q, k) if to_angles else ()))


def _to_angles(
    grad: Tensor, x: Tensor, cos: Tensor, interleaved: bool
) -> tuple[Tensor, Tensor]:
    """The gradients of cos and sin."""
    pairs, dtype = cos.shape[-1], computed_in(x.dtype)
    a, b = (each.to(dtype) for each in _pairs(x, pairs, interleaved))
    of_a, of_b = (each.to(dtype) for each in _pairs(grad, pairs, interleaved))
    to_cos = (of_a * a + of_b * b).sum_to_size(cos.shape)
    to_sin = (of_b * a - of_a * b).sum_to_size(cos.shape)
    return to_cos, to_sin


def _gradient(ctx: Any, grad_q: Tensor, grad_k: Tensor) -> tuple[Tensor | None, ...]:
    cos, sin, *operands = ctx.saved_tensors
    to_q, to_k = torch.ops.xpurt.rotary_embedding(
        grad_q, grad_k, cos, -sin, ctx.interleaved
    )
    to_cos = to_sin = None
    if operands:
        parts = [
            _to_angles(grad, x, cos, ctx.interleaved)
            for grad, x in zip((grad_q, grad_k), operands, strict=True)
        ]
        to_cos, to_sin = (
            (of_q + of_k).to(cos.dtype) for of_q, of_k in zip(*parts, strict=True)
        )
    return to_q, to_k, to_cos, to_sin, None


def define_op() -> None:
    define(
        f"{_OP}(Tensor q, Tensor k, Tensor cos, Tensor sin, bool interleaved=False) "
        "-> (Tensor, Tensor)",
        cpu=_on_cpu,
        xpu=_on_xpu,
        fake=_fake,
        save=_save,
        gradient=_gradient,
    )
