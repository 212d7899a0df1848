"""The classes of optimized modules: subclasses of what the user wrote, with another
`forward`.

A module keeps its parameters, their names, its attributes and its hooks; only its
`__class__` changes, as with FSDP2. So `state_dict`, `isinstance` and `repr` are as
before, and `copy.deepcopy` and pickle find the class by the one that it is made of.
"""

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from xpurt.optimization import fused_layers
from xpurt.optimization.comparison import comparison, runs_as_written
from xpurt.optimization.fused_forward import (
    ORIGINAL,
    forget_fused_forward,
    fused_forward_of,
)
from xpurt.optimization.joined_linears import joined_result
from xpurt.optimization.named_class import subclass
from xpurt.optimization.packed_weights import never_pack

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


class OptimizedModule:
    """What is common to the classes."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        parts = [each for each in type(self).__mro__ if each in _PARTS]
        made_of = [*parts, original_class(cast(nn.Module, self))]
        return _remade, tuple(made_of), self.__dict__


class _OptimizedLayer(OptimizedModule):
    """A linear layer or a convolution: by a primitive, where no gradient is wanted."""

    def __setattr__(self, name: str, value: Any) -> None:
        # As `fully_shard` does with a shard, which is a DTensor.
        if isinstance(value, Tensor) and type(value) is not nn.Parameter:
            never_pack(cast(nn.Module, self))
        super().__setattr__(name, value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        layer = cast(Any, self)
        given_alone = len(args) == 1 and not kwargs and type(args[0]) is Tensor
        if given_alone and takes_primitives():
            if isinstance(layer, nn.Linear):
                found = joined_result(layer, *args)
                return fused_layers.linear(layer, *args) if found is None else found
            return fused_layers.convolution(layer, *args)
        return original_class(layer).forward(layer, *args, **kwargs)


class _OptimizedForward(OptimizedModule):
    """A module in whose own forward layers are fused."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        module = cast(nn.Module, self)
        original = original_class(module).forward
        plan = fused_forward_of(module, original_class) if takes_primitives() else None
        if plan is None or not plan.takes(module, args, kwargs):
            return original(module, *args, **kwargs)
        if (now := comparison()) is not None:
            return now.call(module, original, plan.run, args)
        return plan.run(module, *args)


@dataclass(frozen=True, slots=True)
class RootSettings:
    """dtype: of autocast, or None to leave it as it is."""

    dtype: torch.dtype | None = None
    channels_last: bool = False


class _OptimizedRoot(OptimizedModule):
    """The model itself: calls run in the chosen type and layout."""

    _optimized_as: RootSettings

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        forward: Any = super().forward  # type: ignore[misc]
        chosen = self._optimized_as
        if chosen.channels_last and takes_primitives():
            args, kwargs = pytree.tree_map(_in_channels_last, (args, kwargs))
        if chosen.dtype is None:
            return forward(*args, **kwargs)
        kind = _device_type(cast(nn.Module, self))
        lower = chosen.dtype is not torch.float32
        with torch.autocast(kind, dtype=chosen.dtype if lower else None, enabled=lower):
            return forward(*args, **kwargs)


_PARTS = (_OptimizedRoot, _OptimizedForward, _OptimizedLayer)


def _in_channels_last(x: Any) -> Any:
    if isinstance(x, Tensor) and x.dim() == 4:
        return x.contiguous(memory_format=torch.channels_last)
    return x


def _device_type(model: nn.Module) -> str:
    first = next(model.parameters(), None)
    return "cpu" if first is None else first.device.type


def takes_primitives() -> bool:
    """Whether a call now may go to primitives: nothing records, transforms or compiles
    what runs."""
    return not (
        runs_as_written()
        or torch.is_grad_enabled()
        or torch.compiler.is_compiling()
        or torch._C._get_tracing_state()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack()
        or torch._C._functorch.peek_interpreter_stack() is not None
    )


def original_class(module: nn.Module) -> type[nn.Module]:
    """The class as the user wrote it."""
    for each in type(module).__mro__:
        if not issubclass(each, OptimizedModule) and issubclass(each, nn.Module):
            return each
    raise AssertionError(type(module))


def is_optimized(module: nn.Module) -> bool:
    return isinstance(module, OptimizedModule)


def optimize_class(module: nn.Module) -> None:
    kind = type(module)
    part = _OptimizedLayer if kind in LAYERS else _OptimizedForward
    module.__class__ = _optimized(part, kind)


def optimize_root(model: nn.Module, settings: RootSettings) -> None:
    """Calls of the model run as the settings say."""
    kind = type(model)
    if _OptimizedRoot not in kind.__mro__:
        parts = [each for each in kind.__mro__ if each in _PARTS]
        model.__class__ = _optimized(_OptimizedRoot, *parts, original_class(model))
    model._optimized_as = settings  # type: ignore[assignment]


def restore_class(module: nn.Module) -> None:
    """Nothing is fused across the module any more."""
    parts = [_OptimizedRoot] if _OptimizedRoot in type(module).__mro__ else []
    kind = original_class(module)
    module.__class__ = _optimized(*parts, kind) if parts else kind
    forget_fused_forward(module)


def may_change_class(module: nn.Module) -> bool:
    """Whether copying and pickling are Python's own, and the class a plain one."""
    kind = type(module)
    names = ("__reduce__", "__reduce_ex__", "__deepcopy__", "__copy__")
    return "forward" not in vars(module) and all(
        getattr(kind, name, None) is getattr(object, name, None) for name in names
    )


_classes: dict[tuple[type, ...], type[nn.Module]] = {}


def _optimized(*made_of: type) -> type[nn.Module]:
    """made_of: some of _PARTS, and the class as the user wrote it."""
    if made_of not in _classes:
        *parts, kind = cast(Any, made_of)
        _classes[made_of] = subclass(kind, *parts, **{ORIGINAL: kind.forward})
    return _classes[made_of]


def _remade(*made_of: type) -> nn.Module:
    made = _optimized(*made_of)
    return made.__new__(made)
