"""Pairs of dtypes: each operand beside the first in each dtype, with dimensions and
without, numbers of each kind, out= of each dtype, and in place."""

from collections.abc import Iterator
from typing import Any

import torch

from xpurt_tools.conformance.check_op import Inputs, OpCheck
from xpurt_tools.conformance.pairs import DTYPES
from xpurt_tools.conformance.sweeps.of_ops import OfOps, operands, with_leaves
from xpurt_tools.conformance.tolerance import Tolerance, tolerance

BESIDE = (*DTYPES, "int8", "int16", "complex128")

NUMBERS: tuple[int | float | complex, ...] = (True, 2, 1.5, 1 + 0.5j)


class Dtypes(OfOps):
    dtypes = DTYPES
    per_op = len(DTYPES)

    def check_sample(self, check: OpCheck, index: int, sample: Any) -> None:
        inputs = check.inputs(sample)
        own = check.tolerance
        in_float32 = tolerance(check.op, torch.float32)
        for name in BESIDE:
            dtype = getattr(torch, name)
            wide = tolerance(check.op, dtype)
            check.tolerance = widest(own, wide)
            for variant, mixed in mixed_calls(inputs, dtype):
                check.call(index, sample, mixed, f"{variant}={name}")
                if check.op.inplace_variant and not sample.broadcasts_input:
                    check.in_place(index, sample, mixed, f"in-place.{variant}={name}")
            if check.op.supports_out:
                # An op of integers computes in float32, however wide its out= is.
                if own.rtol is None:
                    check.tolerance = widest(wide, in_float32)
                check.out_of_dtype(index, sample, dtype, f"out={name}")
        check.tolerance = own
        for variant, mixed in _other_numbers(inputs):
            check.call(index, sample, mixed, variant)


def widest(one: Tolerance, other: Tolerance) -> Tolerance:
    """The wider bounds of two; those of `one` if either has assert_close's defaults."""
    if one.rtol is None or other.rtol is None:
        return one
    return Tolerance(max(one.rtol, other.rtol), max(one.atol or 0, other.atol or 0))


def mixed_calls(inputs: Inputs, dtype: torch.dtype) -> Iterator[tuple[str, Inputs]]:
    """The inputs with one operand, not the first, in `dtype`; and with it or the first
    one without dimensions."""
    tensors = operands(inputs)
    for number, (position, tensor) in enumerate(tensors.items()):
        if number == 0 or tensor.dtype is dtype:
            continue
        there = converted(tensor, dtype)
        yield f"{position}", with_leaves(inputs, {position: there})
        if tensor.dim() and tensor.numel():
            number_ = converted(tensor.detach().reshape(-1)[0], dtype)
            yield f"{position}.0dim", with_leaves(inputs, {position: number_})
        first = next(iter(tensors))
        if tensors[first].dim() and tensors[first].numel():
            alone = tensors[first].detach().reshape(-1)[0].clone()
            yield (
                f"0dim.{position}",
                with_leaves(inputs, {first: alone, position: there}),
            )


def _other_numbers(inputs: Inputs) -> Iterator[tuple[str, Inputs]]:
    """Numbers of another kind in place of a number or of an operand."""
    input_, args, kwargs = inputs
    for place, old in enumerate(args):
        is_number = isinstance(old, int | float | complex)
        if not is_number and not (place == 0 and isinstance(old, torch.Tensor)):
            continue
        for value in NUMBERS:
            there = (*args[:place], value, *args[place + 1 :])
            yield f"number.{place}={value}", (input_, there, kwargs)
    for name, old in kwargs.items():
        if isinstance(old, int | float | complex) and not isinstance(old, bool):
            for value in NUMBERS:
                yield f"number.{name}={value}", (input_, args, {**kwargs, name: value})


def converted(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`tensor` in `dtype`. What the type cannot represent has no defined conversion:
    the real part is taken, and absolute values for types without a sign."""
    values = tensor.detach()
    if values.is_complex() and not dtype.is_complex:
        values = values.real
    if dtype is torch.uint8:
        values = values.to(torch.float64).abs().clamp_max(255)
    there = values.to(dtype, copy=True)
    keeps = tensor.requires_grad and (dtype.is_floating_point or dtype.is_complex)
    return there.requires_grad_(keeps)
