"""A call for each pointwise row, made from the op's schema. Their kernels have one
template, whose forms shapes_calls.py has: here each row is run at the sizes of a line."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from xpurt.kernels import ROWS
from xpurt_tools.conformance.sweeps.shapes_cases import Call, Case
from xpurt_tools.conformance.sweeps.shapes_operands import Operands

LINE = {"n": (5, 100)}
# Arguments of a type, by its name in schemas: numbers in the domain of every function.
NUMBERS = {"number": 0.5, "float": 0.5, "int": 1, "bool": False, "str": "none"}
NAMED = {"rounding_mode": "floor", "approximate": "none", "training": True}
IDLE = ("conj_physical",)  # PyTorch returns a real operand as it is
LOOSE = 2e-3  # of a function of a rounded number


def _functional(name: str) -> Any:
    """The overload that takes the most tensors, and makes one: None without any."""
    best, most = None, 0
    for op_name in (name, f"{name.rstrip('_')}_"):
        packet = getattr(torch.ops.aten, op_name, None)
        for overload in packet.overloads() if packet is not None else ():
            schema = getattr(packet, overload)._schema
            if any(each.is_out for each in schema.arguments):
                continue
            if [str(each.type) for each in schema.returns] != ["Tensor"]:
                continue
            tensors = sum("Tensor" in str(each.type) for each in schema.arguments)
            if tensors > most:
                best, most = getattr(packet, overload), tensors
    return best


def _calls() -> Iterator[Call]:
    named: set[str] = set()
    for row in ROWS:
        op = _functional(row.aten) if row.template == "pointwise" else None
        if op is None or row.aten in named or row.aten in IDLE:
            continue
        named.add(row.aten)
        kind = getattr(row, "dtypes", "")
        yield Call(
            f"row {row.aten}",
            "pointwise rows",
            _maker(op, getattr(row, "conditions", ()), getattr(row, "zero_dim", ())),
            _runner(op),
            LINE,
            (op._schema.name.removeprefix("aten::"),),
            rtol=LOOSE,
            dtypes=("float32",) if "f" in kind else ("int64",),
            most=1 << 16,
            layouts=("contiguous", "stepped"),
        )


def _maker(op: Any, conditions: Any, zero_dim: Any) -> Callable[..., tuple[Any, ...]]:
    positional = [each for each in op._schema.arguments if not each.kwarg_only]

    def make(new: Operands, case: Case) -> tuple[Any, ...]:
        found: list[Any] = []
        tensors = 0
        for argument in positional:
            kind = str(argument.type)
            if "Tensor" in kind:
                values = "unit" if new.dtype.is_floating_point else "index"
                shape = () if tensors in zero_dim else (case["n"],)
                made = new(*shape, values="bool" if tensors in conditions else values)
                found.append(made + 1 if values == "index" and tensors else made)
                tensors += 1
            else:
                plain = kind.removeprefix("Optional[").removesuffix("]").lower()
                number: Any = NAMED.get(argument.name, NUMBERS.get(plain, 0.5))
                found.append(1 if not new.dtype.is_floating_point else number)
        return tuple(found)

    return make


def _runner(op: Any) -> Callable[..., Tensor]:
    arguments = op._schema.arguments
    named = {
        each.name: NAMED[each.name]
        for each in arguments
        if each.kwarg_only and each.name in NAMED
    }
    changes = any(each.is_write for each in arguments)

    def run(*given: Any) -> Tensor:
        first = given[0].clone() if changes else given[0]
        made: Tensor = op(first, *given[1:], **named)
        return made

    return run


OF_ROWS = tuple(_calls())
