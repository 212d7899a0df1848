"""The activations of fused ops, by name, with their derivatives."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from xpurt.errors import nearest

_aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Activation:
    """in_place: overwrites the values, and returns them.
    gradient: from the gradient of the result, and the values before (after, if
    `by_result`).
    is_fused: whether a primitive of oneDNN applies it. Its ReLU makes 0 of NaN, so ReLU is
    a step of its own."""

    name: str
    in_place: Callable[[Tensor], Tensor]
    gradient: Callable[[Tensor, Tensor], Tensor]
    by_result: bool = False
    is_fused: bool = True


def _silu_gradient(grad: Tensor, values: Tensor) -> Tensor:
    if torch.is_grad_enabled():  # aten::silu_backward has no derivative
        s = torch.sigmoid(values)
        return grad * s * (1 + values * (1 - s))
    return _aten.silu_backward(grad, values)  # type: ignore[no-any-return]


ACTIVATIONS: Final = {
    each.name: each
    for each in (
        Activation("none", lambda z: z, lambda g, _: g, by_result=True, is_fused=False),
        Activation(
            "relu",
            torch.relu_,
            lambda g, y: _aten.threshold_backward(g, y, 0),
            by_result=True,
            is_fused=False,
        ),
        Activation("gelu", _aten.gelu_, lambda g, z: _aten.gelu_backward(g, z)),
        Activation(
            "gelu_tanh",
            lambda z: _aten.gelu_(z, approximate="tanh"),
            lambda g, z: _aten.gelu_backward(g, z, approximate="tanh"),
        ),
        Activation("silu", _aten.silu_, _silu_gradient),
        Activation(
            "sigmoid",
            torch.sigmoid_,
            lambda g, y: _aten.sigmoid_backward(g, y),
            by_result=True,
        ),
        Activation(
            "tanh",
            torch.tanh_,
            lambda g, y: _aten.tanh_backward(g, y),
            by_result=True,
        ),
    )
}


def activation_named(op: str, name: str) -> Activation:
    """Raises ValueError for a name that is none of ACTIVATIONS."""
    found = ACTIVATIONS.get(name)
    if found is None:
        near = nearest(name, ACTIVATIONS)
        hint = f' Did you mean "{near}"?' if near else ""
        raise ValueError(
            f'{op} has the activations {", ".join(ACTIVATIONS)}; found "{name}".{hint}'
        )
    return found
