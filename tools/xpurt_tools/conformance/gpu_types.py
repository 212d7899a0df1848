"""Pairs of an op and a dtype that GPUs support and PyTorch's CPU does not.

The oracle of such a pair is the CPU in the next wider type: the operands are converted
to it, and the results are rounded to the pair's type.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from xpurt.testing import outcome

T = TypeVar("T")
Oracle = Callable[[Callable[[T], Any], T], tuple[Any, Exception | None]]

CATEGORY = "only GPUs have the type"

# The oracle's type for each dtype. float64 counts integers exactly, and a bool's value
# is a uint8. Complex types stay as they are if the CPU has no kernel in any of them:
# see `_StandIns`.
_HALF = {torch.float16: torch.float32, torch.complex32: torch.complex64}
ORACLE_TYPES: dict[torch.dtype, dict[torch.dtype, torch.dtype]] = {
    torch.float16: _HALF,
    torch.complex32: _HALF,
    torch.bfloat16: {torch.bfloat16: torch.float32},
    torch.bool: {torch.bool: torch.uint8},
    torch.complex64: {},
    torch.complex128: {},
    **{
        dtype: {dtype: torch.float64}
        for dtype in (
            torch.uint8,
            torch.int8,
            torch.int16,
            torch.int32,
            torch.int64,
        )
    },
}
DTYPES = tuple(str(dtype).removeprefix("torch.") for dtype in ORACLE_TYPES)

# Ops without a CPU kernel in any type. PyTorch's entries of the attention ops compare
# no values; tests/kernels/test_gpu_attention.py does, with plain attention in float64.
NOT_COMPARED = (
    "*.without_cudnn",
    "torch.ops.aten._flash_attention_forward",
    "torch.ops.aten._efficient_attention_forward",
)


def wide_oracle(dtype: torch.dtype) -> Oracle[Any]:
    """An oracle that calls a body with inputs in the wider type, and rounds the
    results."""
    wider = ORACLE_TYPES[dtype]
    narrower = {wide: narrow for narrow, wide in wider.items()}

    def oracle(body: Callable[[Any], Any], inputs: Any) -> tuple[Any, Exception | None]:
        with _StandIns():  # type: ignore[no-untyped-call]
            result, error = outcome(body, _converted(inputs, wider))
        return _converted(result, narrower), error

    return oracle


def _converted(tree: T, types: dict[torch.dtype, torch.dtype]) -> T:
    """`tree` in other types. A tensor that occurs twice remains one tensor."""
    made: dict[int, torch.Tensor] = {}

    def convert(leaf: Any) -> Any:
        if isinstance(leaf, torch.dtype):
            return types.get(leaf, leaf)
        if not isinstance(leaf, torch.Tensor) or leaf.dtype not in types:
            return leaf
        if id(leaf) not in made:
            there = _in_type(leaf.detach(), types[leaf.dtype])
            made[id(leaf)] = there.requires_grad_(leaf.requires_grad)
        return made[id(leaf)]

    converted: T = tree_map(convert, tree)
    return converted


def _in_type(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`tensor` in `dtype`, with the same strides, also of expanded dimensions."""
    if tensor.layout is not torch.strided:
        return tensor.to(dtype)
    repeated = [not stride for stride in tensor.stride()]
    once = tensor[tuple(slice(0, 1) if each else slice(None) for each in repeated)]
    there = torch.empty_strided(once.shape, tensor.stride(), dtype=dtype)
    return there.copy_(once).expand(tensor.shape)


class _StandIns(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Computes ops that the CPU lacks in every complex type by ops that it has."""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if function.overloadpacket is not _NANSUM or not args[0].is_complex():
            return function(*args, **kwargs)
        zeros = torch.where(args[0].isnan(), 0, args[0])
        return torch.ops.aten.sum(zeros, *_all_dims(args[1:]), **kwargs)


_NANSUM = torch.ops.aten.nansum


def _all_dims(dims: tuple[Any, ...]) -> tuple[Any, ...]:
    return dims or (None,)
