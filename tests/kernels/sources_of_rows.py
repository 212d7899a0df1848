"""The sources of a row's kernels, one for each form of its text. Nothing is built."""

from collections.abc import Iterator

import torch

from xpurt.kernels.kinds.custom_kernel import CustomKernel
from xpurt.kernels.kinds.row import Matmul, Reduction, Row, Softmax
from xpurt.kernels.rows.nn.attention import Attention
from xpurt.kernels.rows.table import AnyRow, dtypes_of
from xpurt.kernels.sources.source import DeviceTraits, Source, source_of

# The kinds of rows that have sources. The others call other rows.
SOURCES = (Row, Reduction, Softmax, Matmul, CustomKernel, Attention)
DEVICE = DeviceTraits(
    sub_group=16,
    has_wide_sub_groups=True,
    max_work_group=256,
    local_memory=32768,
    vector_width=16,
)
_NUMBERS = {"int": "I", "SymInt": "I", "bool": "I", "float": "D", "Scalar": "D"}


def sources_of(row: AnyRow) -> Iterator[Source]:
    for template, fields in _keys(row):
        yield source_of(row, template, fields, DEVICE)


def _keys(row: AnyRow) -> Iterator[tuple[str, list[str]]]:
    """Keys as C++ writes them, without the number of the row: template and fields."""
    letters = dtypes_of(row)
    computed_as = "f" if "f" in letters else letters[0]
    for letter in dict.fromkeys([computed_as, letters[-1]]):
        if isinstance(row, Row):
            yield from _pointwise(row, letter)
        elif isinstance(row, Reduction):
            for template in ("reduce_inner", "reduce_outer"):
                yield template, ["w1,2,n", letter * 3]
        elif isinstance(row, Softmax):
            for template in ("softmax_rows", "softmax_columns"):
                yield template, ["", letter * 2]
        elif isinstance(row, Attention):
            for template in ("forward", "change", "keys", "queries"):
                yield f"attention_{template}", ["64", letter * 2, letter, "causal"]
        elif isinstance(row, CustomKernel):
            yield from _custom(row, letter)
        else:
            yield "matmul_tiles", ["16", letter * 3, "adds", ""]
    if isinstance(row, Matmul):
        yield "matmul_vectors", ["16,12,144,160,128", "fff", "adds", "gelu"]


def _pointwise(row: Row, letter: str) -> Iterator[tuple[str, list[str]]]:
    operands = letter * (max(row.uses, default=-1) + 1)
    layout = "3" + "n" * (len(row.uses) + 1)
    given = "P" * len(row.params)
    for variant in row.expressions:
        yield "pointwise", [layout, operands, letter * 2, given, variant]


def _custom(row: CustomKernel, letter: str) -> Iterator[tuple[str, list[str]]]:
    for schema in _schemas(row):
        described: dict[str, str] = {}
        for argument in schema.arguments:
            described |= _argument(argument.name, str(argument.type), letter)
        for number in range(max(1, len(schema.returns))):
            described[f"out{number}"] = f"{letter}3"
        described["out"] = f"{letter}3"
        for each in row.scratch:
            described[each.name] = f"{'l' if each.integral else letter}3"
        arguments = ",".join(f"{name}={value}" for name, value in described.items())
        for number in range(len(row.steps)):
            yield "custom_kernel", [str(number), letter, arguments]


def _schemas(row: CustomKernel) -> list[torch.FunctionSchema]:
    if row.schema:
        return [torch._C.parse_schema("xpurt::op" + row.schema)]
    name = row.aten if "::" in row.aten else f"aten::{row.aten}"
    schemas = torch._C._jit_get_schemas_for_operator(name)
    chosen = [each for each in schemas if each.overload_name in row.overloads]
    return chosen if row.overloads else schemas


def _argument(name: str, type_: str, letter: str) -> dict[str, str]:
    """An argument as a key describes it: see `arguments_of` of the sources."""
    type_ = type_.removeprefix("Optional[").removesuffix("]")
    if type_ == "Tensor":
        return {name: f"{letter}3"}
    if "Tensor" in type_:
        return {f"{name}{number}": f"{letter}3" for number in range(2)}
    if type_.startswith("List["):
        return {name: "L3"}
    return {name: _NUMBERS.get(type_, "N")}
