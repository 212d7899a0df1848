"""Arguments that ops refuse: each argument of each sample wrong in turn, operands that
overlap the result, and operands on another device.

Where the CPU raises, xpu has to raise the same type; where it computes, the results have
to agree.
"""

from collections.abc import Iterator
from typing import Any

import torch

from xpurt_tools.conformance.check_op import Inputs, OpCheck
from xpurt_tools.conformance.sweeps.of_ops import OfOps
from xpurt_tools.conformance.sweeps.other_devices import check_devices
from xpurt_tools.conformance.sweeps.overlaps import check_overlaps

HUGE = 2**62
ABOVE_INT32 = 2**40
ABOVE_FLOAT32 = 1e300
OUT_OF_RANGE = (
    17  # of dimensions and indices of samples; no size that takes much memory
)
ABOVE_UINT8 = 300

# In these types only numbers are varied: they are out of the type's range.
NARROW = ("float16", "uint8")


class Arguments(OfOps):
    also = NARROW

    def check_sample(self, check: OpCheck, index: int, sample: Any) -> None:
        inputs = check.inputs(sample)
        narrow = check.record.dtype in NARROW
        for variant, wrong in wrong_calls(inputs, numbers_alone=narrow):
            check.call(index, sample, wrong, variant)
        if not narrow:
            check_overlaps(check, index, sample)
            check_devices(check, index, sample)


def wrong_calls(inputs: Inputs, *, numbers_alone: bool) -> Iterator[tuple[str, Inputs]]:
    """`inputs` with one argument changed, and a name as in "dim=-1" or "1[0]=0" for the
    first element of the second positional argument."""
    input_, args, kwargs = inputs
    for text, value in _wrong("input", input_, numbers_alone):
        yield text, (value, args, kwargs)
    for number, old in enumerate(args):
        for text, value in _wrong(str(number), old, numbers_alone):
            yield text, (input_, (*args[:number], value, *args[number + 1 :]), kwargs)
    for name, old in kwargs.items():
        for text, value in _wrong(name, old, numbers_alone):
            yield text, (input_, args, {**kwargs, name: value})


def _wrong(name: str, old: Any, numbers_alone: bool) -> Iterator[tuple[str, Any]]:
    if isinstance(old, bool):
        if not numbers_alone:
            yield f"{name}={not old}", not old
    elif isinstance(old, int | float):
        for value in _numbers(old, ABOVE_UINT8 if numbers_alone else OUT_OF_RANGE):
            yield f"{name}={value}", value
    elif numbers_alone:
        return
    elif isinstance(old, str) and old != "cpu":
        yield f"{name}=no_such", "no_such"
    elif isinstance(old, torch.Tensor):
        yield from _tensors(name, old)
    elif isinstance(old, list | tuple) and old:
        yield from _lists(name, old)


def _numbers(old: int | float, beyond: int) -> tuple[int | float, ...]:
    if isinstance(old, int):
        return 0, -1, -2, beyond, -beyond, ABOVE_INT32, HUGE
    return 0.0, -1.0, 2.0, ABOVE_FLOAT32, float("nan")


def _lists(name: str, old: Any) -> Iterator[tuple[str, Any]]:
    """Lists of numbers: other lengths, one element wrong, and all of them. Of lists of
    tensors one tensor is left out."""
    make = type(old) if type(old) in (list, tuple) else list
    yield f"{name}=[]", make()
    yield f"{name}=shorter", make(old[:-1])
    yield f"{name}=longer", make([*old, old[-1]])
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in old):
        return
    for value in (0, -1, OUT_OF_RANGE, HUGE):
        for place in range(len(old)):
            there = make([*old[:place], value, *old[place + 1 :]])
            yield f"{name}[{place}]={value}", there
        if value != OUT_OF_RANGE and len(old) > 1:
            yield f"{name}[:]={value}", make([value] * len(old))


def _tensors(name: str, old: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """One element out of the range of an index, of a probability, or of numbers."""
    if old.layout is not torch.strided or old.numel() == 0 or old.is_nested:
        return
    if old.is_complex() or old.dtype is torch.bool or old.is_quantized:
        return
    if old.is_floating_point():
        values: tuple[float, ...] = (float("nan"), -1.0, 2.0)
    else:
        values = (-1, OUT_OF_RANGE) if old.dtype.is_signed else (OUT_OF_RANGE,)
    for value in values:
        changed = old.detach().clone()
        changed[(-1,) * changed.dim()] = value
        yield f"{name}.last={value}", changed.requires_grad_(old.requires_grad)
    if old.dim():
        fewer = old.detach().narrow(0, 0, old.shape[0] - 1).clone()
        yield f"{name}.fewer", fewer.requires_grad_(old.requires_grad)
    yield (
        f"{name}.unsqueezed",
        old.detach().unsqueeze(0).requires_grad_(old.requires_grad),
    )
