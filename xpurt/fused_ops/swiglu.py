"""swiglu: silu(gate) * up (Shazeer, GLU variants improve transformer, 2020).

The backward pass computes both gradients from the operands: silu(gate) is not kept.
"""

import math
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor

from xpurt.fused_ops.definition import define, differentiable_gradients
from xpurt.fused_ops.operands import (
    as_matrix,
    require,
    require_floating,
    require_same_device,
    require_same_type,
    sizes,
    with_adjacent_elements,
)

_COLUMNS: Final = 512  # of a row of dense operands


def _check(gate: Tensor, up: Tensor) -> None:
    require_floating("swiglu", "gate", gate)
    require_same_device("swiglu", gate=gate, up=up)
    require_same_type("swiglu", gate=gate, up=up)
    require(
        gate.shape == up.shape,
        f"swiglu multiplies tensors of the same sizes; found `gate` {sizes(gate)} and "
        f"`up` {sizes(up)}. Expand one of them",
    )


def _on_cpu(gate: Tensor, up: Tensor) -> Tensor:
    _check(gate, up)
    return F.silu(gate).mul_(up).contiguous()


def _matrices(*tensors: Tensor) -> list[Tensor]:
    """The tensors as matrices whose rows are adjacent elements. Dense ones have short
    rows, so that there are enough for all processors."""
    if all(each.is_contiguous() for each in tensors):
        columns = math.gcd(tensors[0].numel(), _COLUMNS)
        if columns >= _COLUMNS // 8:
            return [each.view(-1, columns) for each in tensors]
    return [as_matrix(with_adjacent_elements(each)) for each in tensors]


def _on_xpu(gate: Tensor, up: Tensor) -> Tensor:
    _check(gate, up)
    out = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    if out.numel():
        torch.ops.xpurt.swiglu_out(*_matrices(gate, up, out))
    return out


def _fake(gate: Tensor, up: Tensor) -> Tensor:
    _check(gate, up)
    return torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)


def _gradients_on_cpu(grad: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    to_gate = torch.ops.aten.silu_backward(grad * up, gate)
    return to_gate.contiguous(), F.silu(gate).mul_(grad).contiguous()


def _gradients_on_xpu(grad: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    to_gate, to_up = _fake_gradients(grad, gate, up)
    if to_gate.numel():
        operands = grad, gate, up, to_gate, to_up
        torch.ops.xpurt.swiglu_backward_out(*_matrices(*operands))
    return to_gate, to_up


def _fake_gradients(grad: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    return _fake(gate, up), _fake(gate, up)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _gradient(ctx: Any, grad: Tensor) -> Any:
    gate, up = ctx.saved_tensors
    if torch.is_grad_enabled():
        return differentiable_gradients(lambda g, u: F.silu(g) * u, (gate, up), (grad,))
    return torch.ops.xpurt.swiglu_backward(grad, gate, up)


def define_op() -> None:
    define(
        "swiglu(Tensor gate, Tensor up) -> Tensor",
        cpu=_on_cpu,
        xpu=_on_xpu,
        fake=_fake,
        save=_save,
        gradient=_gradient,
    )
    define(
        "swiglu_backward(Tensor grad, Tensor gate, Tensor up) -> (Tensor, Tensor)",
        cpu=_gradients_on_cpu,
        xpu=_gradients_on_xpu,
        fake=_fake_gradients,
    )
