"""The layers above eager mode that a module can be run through."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

import xpurt
import xpurt.lazy
from xpurt.optimization.comparison import optimized

Call = Callable[..., Any]


def _optimized(module: nn.Module) -> Call:
    return _in_optimized_form(xpurt.optimize(module, inplace=True))


def _in_optimized_form(model: nn.Module) -> Call:
    def call(*args: Any, **kwargs: Any) -> Any:
        with optimized():  # also where it takes longer
            return model(*args, **kwargs)

    return call


def _compiled(module: nn.Module) -> Call:
    torch._dynamo.reset()
    call: Call = torch.compile(module)
    return call


def _itself(module: nn.Module) -> Call:
    return module


@contextlib.contextmanager
def _lazily() -> Iterator[None]:
    xpurt.lazy.init()
    with xpurt.lazy.mode():
        yield


@dataclass(frozen=True, slots=True)
class Layer:
    """made: the module's call through the layer.
    of: the same of a copy of a module that `made` had.
    within: what the call and its backward are made in.
    on_cpu: it is for CPU tensors, too.
    trains: it is for training mode and gradients, too."""

    made: Callable[[nn.Module], Call] = _itself
    of: Callable[[nn.Module], Call] = _itself
    within: Callable[[], contextlib.AbstractContextManager[Any]] = (
        contextlib.nullcontext
    )
    on_cpu: bool = False
    trains: bool = True


LAYERS: Final = {
    "optimize": Layer(_optimized, _in_optimized_form, on_cpu=True, trains=False),
    "compile": Layer(_compiled, _compiled),
    "lazy": Layer(within=_lazily),
}
