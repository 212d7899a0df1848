"""The classes of optimized modules: subclasses of what the user wrote, with another
`forward`.

A module keeps its parameters, their names, its attributes and its hooks; only its
`__class__` changes, as with FSDP2. So `state_dict`, `isinstance` and `repr` are as
before, and `copy.deepcopy` and pickle find the class by the one that it is made of.
"""

from dataclasses import dataclass
from typing import Any, Final, cast

import torch
from torch import Tensor, nn
from torch.fx._symbolic_trace import is_fx_symbolic_tracing
from torch.utils import _pytree as pytree

from xpurt.functional.convolutions import Geometry
from xpurt.optimization.fused_convolution import convolution
from xpurt.optimization.fused_linear import linear
from xpurt.optimization.module_state import forget_state, state_of
from xpurt.optimization.named_class import subclass
from xpurt.optimization.packed_weights import never_pack
from xpurt.optimization.requested_form import requested_form

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
        # As `fully_shard` does with a shard, which is a DTensor, and with what it gathers.
        if isinstance(value, Tensor):
            if type(value) is not nn.Parameter:
                object.__setattr__(self, _IS_SHARDED, True)
            elif _IS_SHARDED in vars(self):
                never_pack(value)
        super().__setattr__(name, value)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        given_alone = len(args) == 1 and not kwargs and type(args[0]) is Tensor
        if not (given_alone and takes_primitives()):
            return super().forward(*args, **kwargs)  # type: ignore[misc]
        (x,), layer = args, cast(Any, self)
        written = original_class(layer).forward
        return state_of(layer).forms.run(
            lambda: written(layer, x), lambda: _by_primitive(layer, x), args, kwargs
        )


_IS_SHARDED: Final = "_has_sharded_parameters"


def _by_primitive(layer: Any, x: Tensor) -> Tensor:
    if isinstance(layer, nn.Linear):
        return linear(x, layer.weight, layer.bias)
    geometry = Geometry(layer.stride, layer.padding, layer.dilation, layer.groups)
    return convolution(x, layer.weight, layer.bias, geometry)


class _OptimizedForward(OptimizedModule):
    """A module in whose forward layers are fused, where the program calls it itself: in
    the forward of another such module it is part of that one's graph."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if not takes_primitives() or any(map(_is_subclass, args)):
            return super().forward(*args, **kwargs)  # type: ignore[misc]
        module = cast(nn.Module, self)
        state = state_of(module)
        return state.forms.run(
            lambda: _as_written(module, *args, **kwargs),
            lambda: state.captured(_as_written)(module, *args, **kwargs),
            args,
            kwargs,
        )


def _as_written(module: Any, *args: Any, **kwargs: Any) -> Any:
    return super(_OptimizedForward, module).forward(*args, **kwargs)


def _is_subclass(x: Any) -> bool:
    return isinstance(x, Tensor) and type(x) not in (Tensor, nn.Parameter)


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
        torch.compiler.is_compiling()
        or requested_form() is False
        or torch.is_grad_enabled()
        or nn.modules.module._has_any_global_hook()  # type: ignore[no-untyped-call]
        or torch._C._get_tracing_state()
        or torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack()
        or is_fx_symbolic_tracing()
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
    forget_state(module)


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
        _classes[made_of] = subclass(kind, *parts)
    return _classes[made_of]


def _remade(*made_of: type) -> nn.Module:
    made = _optimized(*made_of)
    return made.__new__(made)
