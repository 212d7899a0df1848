"""Which overloads of which ops the rows are for, read from rows and schemas alone.

What C++ binds, it binds by the same rules (csrc/row_spec.cpp): they are said again here
so that the list of ops can be made where no device is.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from xpurt.kernels import table
from xpurt.kernels.attention import Attention
from xpurt.kernels.decomposed import Decomposed
from xpurt.kernels.element_types import TYPES
from xpurt.kernels.row import Matmul, Reduction, Row, Softmax
from xpurt.kernels.steps import Steps
from xpurt.kernels.table import AnyRow

Schema = torch.FunctionSchema

KINDS = {
    Row: "pointwise",
    Reduction: "reduction",
    Softmax: "lines",
    Matmul: "oneDNN, or tiles",
    Steps: "steps",
    Decomposed: "decomposed",
}
REDUCTION_ARGUMENTS = {"self", "dim", "keepdim", "dtype", "out"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One row. `overloads`: "" is the default one; those in place begin with "_".
    `file`: where the row is, below the package's folder."""

    op: str
    overloads: tuple[str, ...]
    kind: str
    dtypes: tuple[str, ...]
    file: str


def op_entries() -> list[Entry]:
    """An entry per row, by the names of the ops."""
    files = _files()
    entries = [
        Entry(
            op=row.aten,
            overloads=tuple(sorted(_overloads(row))),
            kind=KINDS.get(type(row), row.template),
            dtypes=tuple(TYPES[letter].dtype for letter in row.kind.dtypes),
            file=files[id(row)],
        )
        for row in table.ROWS
    ]
    return sorted(entries, key=lambda entry: (entry.op, entry.overloads))


def _files() -> dict[int, str]:
    """The file of each row, by its identity: of the module in whose ROWS it is."""
    return {
        id(row): f"kernels/{name}.py"
        for name, module in vars(table).items()
        for row in getattr(module, "ROWS", ())
    }


def _overloads(row: AnyRow) -> Iterator[str]:
    """Those of the op, and those of its form in place."""
    if "::" in row.aten:  # of xpurt's own, with one schema
        yield ""
        return
    found = {
        (mark, schema.overload_name): schema
        for mark in ("", "_")
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{row.aten}{mark}")
        if _has_kernel_of_its_own(schema)
    }
    operands = _operands(list(found.values()))
    for (mark, name), schema in found.items():
        if row_overloads(row) and name not in row_overloads(row):
            continue
        if _fits(row, schema, operands):
            yield f"{mark}{name}"


def row_overloads(row: AnyRow) -> tuple[str, ...]:
    """Those that it names; none: it is for all."""
    return tuple(getattr(row, "overloads", ()))


def _has_kernel_of_its_own(schema: Schema) -> bool:
    """False for an op that PyTorch differentiates through its parts."""
    name = f"{schema.name}.{schema.overload_name}".removesuffix(".")
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    try:
        return has(name, "CPU") or not has(name, "CompositeImplicitAutograd")
    except RuntimeError:
        return False  # TorchScript has it, the dispatcher has not


def _operands(schemas: list[Schema]) -> list[str]:
    """Names of the arguments that are tensors in some overload."""
    names = dict.fromkeys(
        argument.name
        for schema in schemas
        for argument in schema.arguments
        if _kind(argument) == "Tensor" and not argument.is_out
    )
    return list(names)


def _kind(argument: torch.Argument) -> str:
    return str(argument.type).removeprefix("Optional[").removesuffix("]")


def _fits(row: AnyRow, schema: Schema, operands: list[str]) -> bool:
    if isinstance(row, Steps):
        return _gives_tensors(schema)
    if isinstance(row, Attention):
        return not any(argument.is_out for argument in schema.arguments)
    if isinstance(row, Decomposed):
        # An op whose name ends with "_" has a function that writes to its arguments.
        return row.aten.endswith("_") or _writes_tensors(schema)
    if len(schema.returns) != 1 or str(schema.returns[0].type) != "Tensor":
        return False
    names = {argument.name for argument in schema.arguments}
    if isinstance(row, Reduction):
        return names <= REDUCTION_ARGUMENTS
    if isinstance(row, Matmul):
        return "out_dtype" not in names
    return not isinstance(row, Row) or _is_bound(row, schema, operands)


def _gives_tensors(schema: Schema) -> bool:
    given = (str(each.type) == "Tensor" for each in schema.returns)
    return _writes_tensors(schema) and all(given)


def _writes_tensors(schema: Schema) -> bool:
    return all(
        _kind(argument) == "Tensor"
        for argument in schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    )


def _is_bound(row: Row, schema: Schema, operands: list[str]) -> bool:
    """Whether each argument has a meaning for a pointwise row."""
    variants = [name for name in row.expressions if name or len(row.expressions) > 1]
    varies = False
    for argument in schema.arguments:
        kind = _kind(argument)
        is_number = kind in ("number", "float", "int")
        if argument.is_out or argument.name in row.ignored:
            continue
        if argument.name in operands:
            if kind != "Tensor" and not is_number:
                return False
        elif variants and kind in ("str", "bool"):
            varies = True
        elif not (argument.name in row.params and is_number):
            return False
    return varies or not variants
