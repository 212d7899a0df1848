"""The types of the functions of csrc/python/layouts. Blocks and tensors are those of the
calling thread."""

from collections.abc import Callable

import torch
from torch import Tensor

def register_kernels(compute: Callable[..., Tensor | None]) -> None:
    """Once per process. `compute` gets the name of an op of a block, as "conv2d", and its
    arguments, and returns None where PyTorch computes."""

def register_operands(
    op: str, operands: dict[str, tuple[torch.dtype | str | None, bool]]
) -> None:
    """By argument: its type, "block" or None, and whether it is in channels last. Raises
    ValueError if there is no such op or argument, or if the op has operands already."""

def types_of_keys() -> list[str]:
    """The device types whose Autocast keys are those of blocks."""

def begin_block() -> None: ...
def end_block() -> None:
    """Temporary tensors are tensors as any other from the end of the outermost one."""

def depth() -> int:
    """How many blocks are open."""

def tensors_are_transformed() -> bool:
    """Under torch.func, in fake tensors, and while a program is traced."""

def ops_of_block(device_type: str) -> tuple[bool, bool]:
    """Whether ops on these devices get a layout, and whether they compute in int8."""

def set_ops_of_block(device_type: str, layout: bool, int8: bool) -> None: ...
def note_temporary(tensor: Tensor) -> None:
    """If it is in channels last: it becomes plain when a program asks for a view, or when
    the outermost block ends."""

def is_temporary(tensor: Tensor) -> bool: ...
def make_plain(tensor: Tensor) -> bool:
    """Exchanges the memory of a temporary tensor. False if it keeps it, since something
    else looks at it."""

def known_to_python() -> list[Tensor]:
    """The temporary tensors that have been objects of Python."""

def differentiable(source: Tensor, made: Tensor) -> Tensor:
    """`made`, a conversion of `source` to another dtype or layout, with a gradient, which
    is contiguous where the source is."""

def keep_call(op: str, arguments: tuple[object, ...]) -> None:
    """Within `compute`: calls like the one that is computed now call this op, as
    "mkldnn::_linear_pointwise", until the outermost block ends. The first argument is a
    place for the input."""

def keep_op_itself(weight: Tensor, bias: Tensor | None) -> None:
    """In the same way, the op that is computed, with a converted weight and bias."""

def watch_weight(weight: Tensor) -> int:
    """Until the outermost block ends it is noticed if somebody takes a pointer to write by,
    as through `weight.data`. Returns the number of the watch."""

def is_unwritten(weight: Tensor, watch: int) -> bool:
    """False if such a pointer was taken since that watch began."""

def count_temporaries() -> int: ...
