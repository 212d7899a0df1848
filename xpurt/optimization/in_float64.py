"""A call computed in float64: how far rounding takes its results."""

from typing import Any, Final

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

_WIDER: Final = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}


class InFloat64(TorchFunctionMode):
    """Functions of PyTorch get float64 in place of narrower floats. Each call converts
    what it reads, so there is no copy of all parameters. A write to a narrower tensor
    would go to that copy: it raises RuntimeError."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if getattr(func, "__name__", "") == "__get__":
            # An attribute, such as the dtype. The value of the tensor is not read.
            return in_float64(func(*args))
        kwargs = kwargs or {}
        for written in _written(func, args, kwargs):
            if written.dtype in _WIDER:
                # A TypeError would make Python try another operator.
                raise RuntimeError(f"{_name(func)} writes to {written.dtype}")
        args, kwargs = pytree.tree_map(in_float64, (args, kwargs))
        return func(*args, **kwargs)


def _name(func: Any) -> str:
    return str(getattr(func, "__name__", ""))


def _written(func: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors that a function's name or arguments say it writes to."""
    name, out = _name(func), kwargs.get("out")
    is_inplace = name == "__setitem__" or (name[-1:] == "_" and name[-2:] != "__")
    given = [*args[:1]] if is_inplace or kwargs.get("inplace") is True else []
    return [x for x in (*given, *pytree.tree_leaves(out)) if isinstance(x, Tensor)]


def in_float64(x: Any) -> Any:
    """A tensor or a dtype in the wider type; anything else as it is."""
    if isinstance(x, Tensor):
        return x.to(_WIDER.get(x.dtype, x.dtype))
    return _WIDER.get(x, x) if isinstance(x, torch.dtype) else x
