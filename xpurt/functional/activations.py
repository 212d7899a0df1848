"""The activations that are computed with what comes before them.

A new one is a row of `FUNCTIONS`, and one of the table in csrc/onednn/activation.cpp. Then
`xpurt.optimize` and frozen compiled graphs fuse it, and so do fused ops, if it has a
gradient here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from xpurt.errors import nearest

_aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Trained:
    """An activation without numbers, as fused ops take it.

    in_place: overwrites the values, and returns them.
    gradient: from the gradient of the result, and the values before (after, if
    `by_result`).
    by_primitive: whether oneDNN may apply it. Its ReLU makes 0 of NaN, which a program
    under training has to see."""

    in_place: Callable[[Tensor], Tensor]
    gradient: Callable[[Tensor, Tensor], Tensor]
    by_result: bool = False
    by_primitive: bool = True


@dataclass(frozen=True, slots=True)
class Function:
    """An activation of values, and of two numbers at most.

    attribute, algorithm: what ops of the namespace mkldnn call it, and which of two
    formulas. No attribute: they do not have it.
    usual: the numbers of programs; frozen graphs, where they are constants of other ops,
    fuse it with these alone.
    trained: None if it has no form for fused ops."""

    name: str
    apply: Callable[[Tensor, float, float], Tensor]
    attribute: str = ""
    algorithm: str = ""
    usual: tuple[tuple[float, ...], ...] = ((),)
    trained: Trained | None = None

    @property
    def numbers(self) -> int:
        """How many numbers it has."""
        return len(self.usual[0])


def _silu_gradient(grad: Tensor, values: Tensor) -> Tensor:
    if torch.is_grad_enabled():  # aten::silu_backward has no derivative
        s = torch.sigmoid(values)
        return grad * s * (1 + values * (1 - s))
    return _aten.silu_backward(grad, values)  # type: ignore[no-any-return]


FUNCTIONS: Final = {
    each.name: each
    for each in (
        Function(
            "none",
            lambda x, a, b: x,
            "none",
            trained=Trained(
                lambda x: x, lambda g, y: g, by_result=True, by_primitive=False
            ),
        ),
        Function(
            "relu",
            lambda x, a, b: torch.relu(x),
            "relu",
            trained=Trained(
                torch.relu_,
                lambda g, y: _aten.threshold_backward(g, y, 0),
                by_result=True,
                by_primitive=False,
            ),
        ),
        Function(
            "leaky_relu",
            lambda x, a, b: F.leaky_relu(x, a),
            "leaky_relu",
            usual=((0.01,), (0.1,), (0.2,)),
        ),
        Function("elu", lambda x, a, b: F.elu(x, a), usual=((1.0,),)),
        Function(
            "clamp",
            lambda x, a, b: x.clamp(a, b),
            "hardtanh",
            usual=((0, 6), (-1, 1), (0, 1)),
        ),
        Function(
            "gelu",
            lambda x, a, b: F.gelu(x),
            "gelu",
            algorithm="none",
            trained=Trained(_aten.gelu_, lambda g, x: _aten.gelu_backward(g, x)),
        ),
        Function(
            "gelu_tanh",
            lambda x, a, b: F.gelu(x, approximate="tanh"),
            "gelu",
            algorithm="tanh",
            trained=Trained(
                lambda x: _aten.gelu_(x, approximate="tanh"),
                lambda g, x: _aten.gelu_backward(g, x, approximate="tanh"),
            ),
        ),
        Function(
            "silu",
            lambda x, a, b: F.silu(x),
            "swish",
            trained=Trained(_aten.silu_, _silu_gradient),
        ),
        Function(
            "sigmoid",
            lambda x, a, b: torch.sigmoid(x),
            "sigmoid",
            trained=Trained(
                torch.sigmoid_,
                lambda g, y: _aten.sigmoid_backward(g, y),
                by_result=True,
            ),
        ),
        Function(
            "tanh",
            lambda x, a, b: torch.tanh(x),
            "tanh",
            trained=Trained(
                torch.tanh_, lambda g, y: _aten.tanh_backward(g, y), by_result=True
            ),
        ),
        Function(
            "hardswish",
            lambda x, a, b: F.hardswish(x),
            "hardswish",
            trained=Trained(
                _aten.hardswish_, lambda g, x: _aten.hardswish_backward(g, x)
            ),
        ),
    )
}


class Activation(NamedTuple):
    """A function with its numbers. leaky_relu: `alpha` is the slope below 0. elu: the
    result is above -`alpha`. clamp: it is between `alpha` and `beta`."""

    name: str = "none"
    alpha: float = 0.0
    beta: float = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        return FUNCTIONS[self.name].apply(x, self.alpha, self.beta)

    @property
    def of_mkldnn(self) -> tuple[str, list[float], str]:
        """The attribute, its numbers and the algorithm, for ops of the namespace
        mkldnn; those of no activation if they do not have it."""
        known = FUNCTIONS[self.name]
        if not known.attribute:
            return NONE.of_mkldnn
        numbers = [self.alpha, self.beta][: known.numbers]
        return known.attribute, numbers, known.algorithm

    @property
    def after_mkldnn(self) -> "Activation":
        """What is left to apply to the result of such an op."""
        return NONE if FUNCTIONS[self.name].attribute else self


NONE: Final = Activation()


def trained(op: str, name: str) -> Trained:
    """The activation of this name for a fused op. Raises ValueError if it has none."""
    found = FUNCTIONS.get(name)
    if found is None or found.trained is None:
        known = [each.name for each in FUNCTIONS.values() if each.trained is not None]
        near = nearest(name, known)
        hint = f' Did you mean "{near}"?' if near else ""
        raise ValueError(
            f'{op} has the activations {", ".join(known)}; found "{name}".{hint}'
        )
    return found.trained
