"""The ops and overloads to which the rows are bound."""

from collections import defaultdict
from dataclasses import dataclass

from xpurt import _C
from xpurt.kernels import registration
from xpurt.kernels.kinds.custom_kernel import CustomKernel
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.element_types import TYPES
from xpurt.kernels.kinds.row import Matmul, Reduction, Row, Softmax
from xpurt.kernels.rows import table

KINDS = {
    Row: "pointwise",
    Reduction: "reduction",
    Softmax: "lines",
    Matmul: "oneDNN, or tiles",
    CustomKernel: "custom kernel",
    Decomposed: "decomposed",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One row. `overloads`: "" is the default overload; names of in-place overloads
    begin with "_". `file`: the row's file, relative to the package's folder."""

    op: str
    overloads: tuple[str, ...]
    kind: str
    dtypes: tuple[str, ...]
    file: str


def op_entries() -> list[Entry]:
    """One entry per row, sorted by op. Registers the rows; needs no device."""
    registration.register()
    files = _files()
    overloads = _overloads()
    entries = [
        Entry(
            op=row.aten,
            overloads=tuple(sorted(overloads[index])),
            kind=_kind(row),
            dtypes=tuple(TYPES[letter].dtype for letter in table.dtypes_of(row)),
            file=files[id(row)],
        )
        for index, row in enumerate(table.ROWS)
    ]
    return sorted(entries, key=lambda entry: (entry.op, entry.overloads))


def _kind(row: table.AnyRow) -> str:
    if isinstance(row, CustomKernel) and row.primitive:
        return "oneDNN, or a custom kernel"
    return KINDS.get(type(row), row.template)


def _files() -> dict[int, str]:
    """The file of each row by the row's `id`: that of the module whose ROWS has it."""
    return {
        id(row): f"{module.__name__.removeprefix('xpurt.').replace('.', '/')}.py"
        for module in vars(table).values()
        for row in getattr(module, "ROWS", ())
    }


def _overloads() -> dict[int, list[str]]:
    """The bound overloads of each row's op and of its in-place form, by row number."""
    found = defaultdict(list)
    for index, op, overload in _C.bound_overloads():
        in_place = op.removeprefix("aten::") == f"{table.ROWS[index].aten}_"
        found[index].append(f"{'_' * in_place}{overload}")
    return found
