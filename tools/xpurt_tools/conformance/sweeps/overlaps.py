"""Operands that share memory with the result: in place, and out=.

Where the CPU raises, xpu has to. Where it computes and overlapping memory has spoiled its
result, nothing is compared: PyTorch leaves the values undefined.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_map

from xpurt.testing import outcome
from xpurt_tools.conformance.check_op import Inputs, OpCheck
from xpurt_tools.conformance.inputs import moved
from xpurt_tools.conformance.sweeps.of_ops import operands, with_leaves
from xpurt_tools.conformance.trial import CPU


def check_overlaps(check: OpCheck, index: int, sample: Any) -> None:
    inputs = tree_map(_detached, check.inputs(sample))
    input_, in_place = inputs[0], check.op.inplace_variant
    plain = isinstance(input_, torch.Tensor) and input_.layout is torch.strided
    if plain and in_place is not None and not sample.broadcasts_input:
        _check(check, index, "in-place", in_place, inputs, input_)
    if check.op.supports_out:
        with torch.no_grad():
            result, error = outcome(check.called, moved(inputs, CPU))
        if error is None and isinstance(result, torch.Tensor):
            _check(check, index, "out=", check.op.op, inputs, result)


def _check(
    check: OpCheck,
    index: int,
    form: str,
    op: Any,
    inputs: Inputs,
    written: torch.Tensor,
) -> None:
    in_place = form == "in-place"

    def body(there: tuple[Inputs, torch.Tensor]) -> Any:
        (input_, args, kwargs), into = there
        with torch.no_grad():
            if in_place:
                op(into, *args, **kwargs)
            else:
                op(input_, *args, **kwargs, out=into)
        return into

    expected, error = outcome(body, moved((inputs, written.clone()), CPU))
    if error is not None or written.numel() < 2:
        return
    for text, overlapping, into in _overlapping(inputs, written, in_place):
        found, error = outcome(body, moved((overlapping, into), CPU))
        spoilt = error is None and not torch.equal(found, expected)  # type: ignore[arg-type]
        if spoilt:
            continue
        check.attempt(f"{form}.{text}", index, (overlapping, into), body)


def _overlapping(
    inputs: Inputs, written: torch.Tensor, in_place: bool
) -> Iterator[tuple[str, Inputs, torch.Tensor]]:
    """The inputs and the tensor that is written, which share memory."""
    once = written.clone()[tuple(slice(0, 1) for _ in written.shape)]
    yield "expanded", inputs, once.expand(written.shape)
    values = written.contiguous().view(-1)
    for position, operand in operands(inputs).items():
        if position == 0 and in_place:
            continue
        if operand.dtype is not written.dtype or not operand.numel():
            continue
        count = operand.numel()
        base = torch.cat([values, values, values[:1]])
        into = base[: values.numel()].view(written.shape)
        if not in_place:
            # The operand keeps its values: the result is what is overwritten.
            base = torch.cat([operand.reshape(-1), values, values])
            into = base[: values.numel()].view(written.shape)
        for text, first in (("within", 0), ("shifted", 1)):
            if count + first > base.numel():
                continue
            shared = base[first : first + count].view(operand.shape)
            if operand.shape == written.shape and first == 0:
                shared = into
            yield f"{text}.{position}", with_leaves(inputs, {position: shared}), into


def _detached(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf
