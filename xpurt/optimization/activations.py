"""Activations that a primitive of oneDNN applies to its result."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Activation(NamedTuple):
    """`name`, `alpha` and `beta` are as in onednn/activation.h."""

    name: str = "none"
    alpha: float = 0.0
    beta: float = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        return _BY_NAME[self.name].apply(x, self.alpha, self.beta)

    @property
    def of_mkldnn(self) -> tuple[str, list[float], str]:
        """The attribute, its numbers and the algorithm, for ops of the namespace
        mkldnn."""
        known = _BY_NAME[self.name]
        numbers = [self.alpha, self.beta][: known.numbers]
        return known.attribute, numbers, known.algorithm


@dataclass(frozen=True, slots=True)
class _Known:
    apply: Callable[[Tensor, float, float], Tensor]
    attribute: str
    numbers: int = 0
    algorithm: str = ""


NONE: Final = Activation()

_BY_NAME: Final = {
    "none": _Known(lambda x, a, b: x, "none"),
    "relu": _Known(lambda x, a, b: torch.relu(x), "relu"),
    "leaky_relu": _Known(lambda x, a, b: F.leaky_relu(x, a), "leaky_relu", 1),
    "clamp": _Known(lambda x, a, b: x.clamp(a, b), "hardtanh", 2),
    "gelu": _Known(lambda x, a, b: F.gelu(x), "gelu", 0, "none"),
    "gelu_tanh": _Known(
        lambda x, a, b: F.gelu(x, approximate="tanh"), "gelu", 0, "tanh"
    ),
    "silu": _Known(lambda x, a, b: F.silu(x), "swish"),
    "sigmoid": _Known(lambda x, a, b: torch.sigmoid(x), "sigmoid"),
    "tanh": _Known(lambda x, a, b: torch.tanh(x), "tanh"),
    "hardswish": _Known(lambda x, a, b: F.hardswish(x), "hardswish"),
}


def of_module(module: nn.Module) -> Activation | None:
    """The activation that the module is; None if it is none of them."""
    kind = type(module)
    if kind is nn.ReLU:
        return Activation("relu")
    if kind is nn.LeakyReLU:
        return Activation("leaky_relu", module.negative_slope)  # type: ignore[arg-type]
    if kind is nn.ReLU6 or kind is nn.Hardtanh:
        return Activation("clamp", module.min_val, module.max_val)  # type: ignore[arg-type]
    if kind is nn.GELU:
        return Activation("gelu" if module.approximate == "none" else "gelu_tanh")
    name = {
        nn.SiLU: "silu",
        nn.Sigmoid: "sigmoid",
        nn.Tanh: "tanh",
        nn.Hardswish: "hardswish",
    }.get(kind)
    return None if name is None else Activation(name)


def of_call(
    target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Activation | None:
    """The activation that a call of a function, or of a method by its name, applies to
    `args[0]`; None if it is none of them."""
    name = _FUNCTIONS.get(target)
    rest = {key: value for key, value in kwargs.items() if key != "inplace"}
    if name is not None and len(args) == 1 and not rest:
        return Activation(name)
    if target is F.gelu and len(args) == 1 and set(rest) == {"approximate"}:
        return Activation("gelu" if rest["approximate"] == "none" else "gelu_tanh")
    return None


_FUNCTIONS: Final[dict[Any, str]] = {
    F.relu: "relu",
    F.relu_: "relu",
    torch.relu: "relu",
    torch.relu_: "relu",
    "relu": "relu",
    "relu_": "relu",
    F.gelu: "gelu",
    F.silu: "silu",
    F.sigmoid: "sigmoid",
    torch.sigmoid: "sigmoid",
    "sigmoid": "sigmoid",
    F.tanh: "tanh",
    torch.tanh: "tanh",
    "tanh": "tanh",
    F.hardswish: "hardswish",
}
