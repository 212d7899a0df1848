"""The class of a model with split parameters: its forward runs under autocast.

The linear layers and convolutions then compute in bfloat16, on parameters that are
bfloat16 already, and what autocast keeps in float32 stays so. Results in bfloat16 become
float32, as those of the model before: a loss has more digits than bfloat16.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from xpurt.optimization.named_class import subclass


class TrainedInBfloat16:
    """What is common to the classes."""

    _original_class: type[nn.Module]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _remade, (self._original_class,), self.__getstate__()


def run_under_autocast(model: nn.Module) -> None:
    """Changes the class of the model, which `may_change_class` allows."""
    model.__class__ = _class_for(type(model))


_classes: dict[type[nn.Module], type[nn.Module]] = {}


def _class_for(kind: type[nn.Module]) -> type[nn.Module]:
    if kind not in _classes:
        forward = _under_autocast(kind.forward)
        _classes[kind] = subclass(
            kind, TrainedInBfloat16, _original_class=kind, forward=forward
        )
    return _classes[kind]


def _under_autocast(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)  # the signature is asked for by trainers
    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        device = next(self.parameters()).device.type
        with torch.autocast(device, dtype=torch.bfloat16):
            result = original(self, *args, **kwargs)
        return tree_map_only(Tensor, _in_float32, result)

    return forward


def _remade(kind: type[nn.Module]) -> nn.Module:
    made = _class_for(kind)
    return made.__new__(made)


def _in_float32(x: Tensor) -> Tensor:
    return x.float() if x.dtype == torch.bfloat16 else x
