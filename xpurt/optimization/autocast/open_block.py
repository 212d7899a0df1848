"""The block of autocast with a layout, or in int8, that a thread is in.

Note [Autocast with a layout]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Ops get their layouts in C++, by dispatch keys that a thread includes while it is in a block:
see Note [Keys of autocast with a layout] and Note [Temporary layouts]. So ops that C++,
TorchScript or a `torch.autograd.Function` calls are seen as those of Python, and an op that
has nothing to do with layouts costs nothing. The casts are those of torch.autocast, whose
state is set, too. Convolutions and linear layers call `computed`, below.
"""

import functools
import sys
from typing import Any, Final

import torch
from torch import Tensor
from torch._guards import TracingContext
from torch.autograd import forward_ad

from xpurt import _layouts
from xpurt.optimization.autocast.int8_ops import INT8_OPS
from xpurt.optimization.autocast.layout_ops import LAYOUT_OPS

NOT_COMPILED: Final = (
    "xpurt.autocast(dtype=torch.int8) was requested for a compiled program, and it is for "
    "programs that run op by op. Compile what xpurt.quantize(model) returns"
)


def begin(device_type: str | None, has_layout: bool, int8: bool) -> None:
    register()
    _layouts.begin_block(device_type, has_layout, int8)


def end() -> None:
    """At the end of the outermost block what the program holds becomes plain."""
    if _layouts.open_blocks() == 1:
        _make_plain_what_is_held()
    _layouts.end_block()


@functools.cache
def register() -> None:
    """Loads the library. A second call does nothing."""
    _layouts.register_kernels(computed)


def computed(op: str, *arguments: Any) -> Tensor | None:
    """A convolution or a linear layer; None where PyTorch computes it, under
    torch.autocast."""
    device_type = arguments[0].device.type
    has_layout, int8 = _layouts.ops_of_block(device_type)
    if int8 and TracingContext.try_get() is not None:
        raise RuntimeError(NOT_COMPILED)
    if _layouts.tensors_are_transformed() or forward_ad._current_level >= 0:
        return None
    watch = _layouts.watched_weight if torch.is_autocast_cache_enabled() else None
    for asked, ops in ((int8, INT8_OPS), (has_layout, LAYOUT_OPS)):
        if asked and op in ops:
            result = ops[op](watch, *arguments)
            if result is not None:
                return result
    return None


def _make_plain_what_is_held() -> None:
    """Tensors that only autograd holds are left alone: nobody can look at them, and the
    backward pass wants the layout."""
    probe = torch.empty(0)
    of_one_name = _references(probe)
    tensors = _layouts.known_to_python()
    while tensors:
        tensor = tensors.pop()
        if _references(tensor) > of_one_name:
            _layouts.make_plain(tensor)
        del tensor


def _references(tensor: Tensor) -> int:
    """References of Python to the tensor, and a constant. C++ has one to the Python
    object while the object isn't alone in holding the tensor."""
    of_cpp = 1 if torch.Tensor._use_count(tensor) > 1 else 0  # type: ignore[attr-defined]
    return sys.getrefcount(tensor) - of_cpp
