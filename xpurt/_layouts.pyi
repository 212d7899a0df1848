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

def begin_block(device_type: str | None, layout: bool, int8: bool) -> None:
    """What ops on these devices get, None for both types, until the block ends."""

def end_block() -> None:
    """Temporary tensors are tensors as any other from the end of the outermost one."""

def open_blocks() -> int:
    """How many there are."""

def tensors_are_transformed() -> bool:
    """Under torch.func, in fake tensors, and while a program is traced."""

def ops_of_block(device_type: str) -> tuple[bool, bool]:
    """Whether ops on these devices get a layout, and whether they compute in int8."""

def note_temporary(tensor: Tensor) -> None:
    """If it is in channels last: it becomes plain when a program asks for a view, or when
    the outermost block ends."""

def is_temporary(tensor: Tensor) -> bool: ...
def make_plain(tensor: Tensor) -> bool:
    """Exchanges the memory of a temporary tensor. False if it keeps it, since something
    else looks at it."""

def known_to_python() -> list[Tensor]:
    """The temporary tensors that have been objects of Python."""

def type_in_block(input: Tensor, weight: Tensor) -> torch.dtype | None:
    """The type in which the block computes an op with these operands; None if the op is
    left alone."""

def in_layout(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor, of four or five dimensions, in the dtype and in channels last."""

def images_in_layout(input: Tensor, dtype: torch.dtype) -> Tensor:
    """In the same way. A plain input has a plain gradient."""

def note_images(result: Tensor, input: Tensor, weight: Tensor) -> None:
    """The result of a convolution, as `note_temporary`, unless PyTorch's for these operands
    would be in channels last, too."""

def fills_memory(tensor: Tensor) -> bool:
    """Whether no two elements share memory, as those of an expanded tensor do."""

def keep_call(op: str, arguments: tuple[object, ...]) -> None:
    """Within `compute`: calls like the one that is computed now call this op, as
    "mkldnn::_linear_pointwise", as long as its tensors live. The first argument is a
    place for the input."""

def keep_op_itself(weight: Tensor, bias: Tensor | None) -> None:
    """In the same way, the op that is computed, with a converted weight and bias."""

class WatchedWeight:
    """A weight as it was when something was made of it."""

    def is_unwritten(self, weight: Tensor) -> bool:
        """Whether it is the same memory in the same version, and nobody has written to it
        without a count. In one block pointers to write by are noticed, as those through
        `weight.data`; the first call in a later block compares elements."""

def watched_weight(weight: Tensor) -> WatchedWeight:
    """The weight as it is now."""

def sampled_places(size: int) -> list[int]:
    """The elements of `size` that are compared, by their number."""

def count_temporaries() -> int: ...
