"""Calls of the pointwise rows' overloads, made from their schemas."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from xpurt.kernels.kinds.row import Row


def has_elements(sample: Any) -> bool:
    """Whether no operand is empty: the CPU's kernels compute calls without elements."""
    leaves = tree_leaves((sample.input, sample.args, sample.kwargs))
    return all(not isinstance(x, torch.Tensor) or x.numel() > 0 for x in leaves)


FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
DTYPE_OF_LETTER = {
    "f": torch.float32,
    "d": torch.float64,
    "h": torch.float16,
    "b": torch.bfloat16,
    "c": torch.int8,
    "s": torch.int16,
    "i": torch.int32,
    "l": torch.int64,
    "u": torch.uint8,
    "t": torch.bool,
}
# Where a function is defined on a part of the numbers only.
UNIT_INTERVAL = {"logit", "logit_backward", "asin", "acos", "atanh"}
POSITIVE = {"log", "log2", "log10", "log1p", "sqrt", "rsqrt", "acosh", "lgamma", "pow"}
DIVIDING = {"div", "floor_divide", "remainder", "fmod", "addcdiv"}
SCALARS = {"alpha": 2, "beta": 1.5, "eps": 0.1, "min_val": -0.5, "max_val": 0.75}
SCALARS |= {"n": 2, "decimals": 1, "lower": 0.125, "upper": 0.5}


@dataclass(frozen=True)
class Overload:
    """One overload of a row's op."""

    op: torch._ops.OpOverload

    @property
    def arguments(self) -> Sequence[torch.Argument]:
        return self.op._schema.arguments

    @property
    def name(self) -> str:
        return self.op._schema.name

    @property
    def has_out(self) -> bool:
        return any(a.is_out for a in self.arguments)

    @property
    def in_place(self) -> bool:
        return any(a.is_write and not a.is_out for a in self.arguments)

    @property
    def tensors(self) -> int:
        return sum("Tensor" in str(a.type) and not a.is_out for a in self.arguments)


def in_dispatcher(op: torch._ops.OpOverload) -> bool:
    """Whether it is an op with kernels, not one of TorchScript's or a composite."""
    try:
        composite = op.has_kernel_for_dispatch_key(
            torch._C.DispatchKey.CompositeImplicitAutograd
        )
        return not composite or op.has_kernel_for_dispatch_key(torch._C.DispatchKey.CPU)
    except RuntimeError:
        return False


def overloads(row: Row) -> Iterator[Overload]:
    """Overloads that kernels are made for, in-place ones included."""
    for name in {row.aten, row.aten.rstrip("_") + "_"}:
        packet = getattr(torch.ops.aten, name, None)
        if packet is None:
            continue
        for each in packet.overloads():
            op = getattr(packet, each)
            returned = op._schema.returns
            if not in_dispatcher(op):
                continue
            strings = any("str" in str(a.type) for a in op._schema.arguments)
            by_variant = set(row.expressions) > {""} or "" not in row.expressions
            if len(returned) != 1 or str(returned[0].type) != "Tensor":
                continue
            if (strings and not by_variant) or (
                row.aten == "div" and strings != by_variant
            ):
                continue
            if row.overloads and each not in row.overloads:
                continue
            by_decimals = any(a.name == "decimals" for a in op._schema.arguments)
            if by_decimals and not row.overloads:
                continue
            yield Overload(op)


def functional(row: Row) -> Overload:
    """The overload with tensors for all operands; in-place where there is no other."""
    found = [o for o in overloads(row) if not o.has_out]
    return max(found, key=lambda o: (not o.in_place, o.tensors))


Maker = Callable[[int, torch.dtype], torch.Tensor]


def numbers(
    row: Row, dtype: torch.dtype, shape: Sequence[int], seed: int
) -> torch.Tensor:
    """Numbers in the op's domain."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if not dtype.is_floating_point:
        low = 1 if row.aten in DIVIDING or row.aten in POSITIVE else -5
        low = max(low, 0) if dtype == torch.uint8 else low
        return torch.randint(low, 6, shape, generator=generator).to(dtype)
    values = torch.rand(shape, generator=generator) * 0.8 + 0.1
    if row.aten in POSITIVE or row.aten in DIVIDING:
        values = values * 4 + (1 if row.aten == "acosh" else 0)
    elif row.aten not in UNIT_INTERVAL:
        values = values * 8 - 4
    return values.to(dtype)


def scalar(name: str, position: int, integral: bool) -> float | int:
    if integral:
        return max(1, int(SCALARS.get(name, 3)))
    return SCALARS.get(name, 0.5 if position else 1.25)


def arguments(
    row: Row, overload: Overload, make: Maker, dtype: torch.dtype, variant: str
) -> list[object]:
    """Arguments for all but out=. Operand k is made by `make`, or a scalar."""
    values: list[object] = []
    operand = 0
    for position, argument in enumerate(overload.arguments):
        kind = str(argument.type)
        if argument.is_out:
            continue
        if "Tensor" in kind:
            is_condition = operand in row.conditions
            made = make(operand, torch.bool if is_condition else dtype)
            zero_dim = operand in row.zero_dim
            values.append(made.flatten()[0].clone() if zero_dim else made)
            operand += 1
        elif "str" in kind:
            values.append(variant)
        elif "bool" in kind:
            values.append(variant == "true")
        else:
            values.append(scalar(argument.name, position, not dtype.is_floating_point))
    return values


def call(
    overload: Overload, values: Sequence[object], out: object = None
) -> torch.Tensor:
    """Calls with arguments by name, as some are keyword-only."""
    given = [a for a in overload.arguments if not a.is_out]
    named = dict(zip((a.name for a in given), values, strict=True))
    if out is not None:
        named |= {a.name: out for a in overload.arguments if a.is_out}
    first = given[0].name
    return overload.op(named.pop(first), **named)
