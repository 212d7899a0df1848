"""The source of a kernel, from the key under which C++ requests it.

A key is ``row;template;layout;types;...`` as the C++ rows write it: the number of
the row, the template, the layout for which it is specialized, letters of element types.
This runs once per kernel, device and process.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import TypedDict

from xpurt.kernels.kinds.custom_kernel import CustomKernel
from xpurt.kernels.kinds.element_types import (
    BOOL,
    TYPES,
    converted,
    is_complex,
    is_floating,
    load,
    real_of,
    store,
)
from xpurt.kernels.kinds.row import Reduction, Row, Softmax
from xpurt.kernels.rows.nn.attention import Attention, attention_values, templates_of
from xpurt.kernels.rows.table import AnyRow
from xpurt.kernels.sources.custom_kernel_source import custom_kernel_values
from xpurt.kernels.sources.matmul import matmul_values

TEMPLATES = Path(__file__).parent / "templates"

_FLOAT_LITERAL = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?)(?![\w.])")
_LARGEST = {
    "f": "3.4028234663852886e38",
    "d": "1.7976931348623157e308",
    "h": "65504.0",
    "b": "3.3895313892515355e38",
}
_LIMITS = {
    "c": ("CHAR_MIN", "CHAR_MAX"),
    "s": ("SHRT_MIN", "SHRT_MAX"),
    "i": ("INT_MIN", "INT_MAX"),
    "l": ("LONG_MIN", "LONG_MAX"),
    "u": ("0", "UCHAR_MAX"),
    "t": ("0", "1"),
}


# AVX-512 in floats. There a guard per element costs up to half of the time, and one per
# work-group nothing. With AVX2 it is the reverse: the compiler masks both branches of
# the latter, and turns the former into the bound of a loop.
WIDE = 16


class DeviceTraits(TypedDict):
    """The properties of a device that its sources may depend on."""

    sub_group: int  # lanes; 0: the device has no sub-groups to use
    has_wide_sub_groups: bool  # of 64 lanes
    max_work_group: int
    local_memory: int  # bytes
    vector_width: int  # floats that a work-item computes with in one instruction


@dataclass(frozen=True, slots=True)
class Source:
    """A kernel's name in its program, and the program."""

    entry: str
    text: str


@cache
def _template(name: str) -> Template:
    return Template((TEMPLATES / f"{name}.cl").read_text())


def fill(name: str, **values: object) -> str:
    return _template(name).substitute(values)


# Numbers of 16-bit floats, written as floats: the least, the least normal one, and the
# distance between the bits of neighbours.
_HALVES = {
    "h": ("0x1p-24f", "0x1p-14f", "0x2000"),
    "b": ("0x1p-133f", "0x1p-126f", "0x10000"),
}
# The compiler decides whether the device has double.
_IN_DOUBLE = """\
#ifdef cl_khr_fp64
typedef double C;
#define C_IS_DOUBLE 1
#else
typedef float C;
#define C_IS_DOUBLE 0
#endif"""


def _stored_half(stored_as: str) -> list[str]:
    if stored_as not in _HALVES:
        return ["#define STORED_BITS 32"]
    least, normal, spacing = _HALVES[stored_as]
    return [
        "#define STORED_BITS 16",
        f"#define LEAST {least}",
        f"#define NORMAL {normal}",
        f"#define SPACING {spacing}",
    ]


def prelude(
    computed_as: str,
    stored_as: str,
    functions: Sequence[str] = (),
    in_double: bool = False,
) -> str:
    """Definitions for a computation in one type, with a result in another."""
    if is_complex(computed_as):
        real = TYPES[real_of(computed_as)].compute
        types = f"typedef {TYPES[computed_as].compute} C;\ntypedef {real} R;"
        return "\n".join([types, fill("prelude"), fill("complex")])
    floating = is_floating(computed_as)
    if floating:
        limits = ("(-(C)INFINITY)", "((C)INFINITY)")
    else:
        limits = _LIMITS[computed_as]
    lines = [
        _IN_DOUBLE if in_double else f"typedef {TYPES[computed_as].compute} C;",
        f"#define LOWEST {limits[0]}",
        f"#define HIGHEST {limits[1]}",
    ]
    if floating:
        largest = _LARGEST[stored_as if is_floating(stored_as) else computed_as]
        lines.append(f"#define LARGEST ((C){largest})")
    if "next" in functions:
        lines += _stored_half(stored_as)
    if functions and not in_double:
        lines.append(f"#define C_IS_DOUBLE {int(computed_as == 'd')}")
    family = "floating" if floating else "integral"
    names = ["prelude", family, *functions]
    parts = ["\n".join(lines), *(fill(name) for name in names)]
    return "\n".join(parts)


def finished(text: str, computed_as: str) -> str:
    """Appends the suffix of the computation's type to float literals."""
    if real_of(computed_as) == "d":
        return text
    return _FLOAT_LITERAL.sub(r"\1f", text)


def _entry(row: AnyRow, *parts: str) -> str:
    name = row.aten.replace("::", "_").strip("_")
    return "_".join([name, *(part for part in parts if part)])


# The broadcast: all lanes have one work-item, so adjacent loads become a vector load.
_LANES = """\
#define work_item_of_lanes() sub_group_broadcast(get_global_id(0) / LANES, 0)
#define lane_id() get_sub_group_local_id()"""
_ONE_LANE = """\
#define work_item_of_lanes() get_global_id(0)
#define lane_id() 0"""


def sub_group(device: DeviceTraits) -> tuple[str, str]:
    """Definitions, and the attributes of a kernel, for a sub-group per line."""
    lanes = device["sub_group"]
    if lanes == 0:
        return f"#define LANES 1\n{_ONE_LANE}", ""
    return (
        f"#define LANES {lanes}\n{_LANES}",
        f"__attribute__((intel_reqd_sub_group_size({lanes})))",
    )


def _indent(lines: Sequence[str], depth: int) -> str:
    return "\n".join("  " * depth + line for line in lines)


def _expression(row: Row, variant: str, computed_as: str) -> str:
    if computed_as == BOOL and row.boolean is not None:
        return row.boolean
    if is_complex(computed_as) and row.complex is not None:
        return row.complex
    if not is_floating(computed_as) and row.integral is not None:
        return row.integral
    expressions = row.expressions
    return expressions[variant] if variant in expressions else expressions[""]


def pointwise_source(row: Row, fields: Sequence[str], device: DeviceTraits) -> Source:
    """Fields: dimensions, inner strides of result and operands ("211n": two dimensions,
    the third tensor strided); types of operands (S: a scalar, T: a CPU tensor of one
    element, N: none); of the result and the computation; given parameters; variant."""
    layout, operands, types, given, variant = fields
    stored_as, computed_as = tuple(types)
    dims, strides = _split_layout(layout, operands, row)
    c_type = TYPES[computed_as].compute
    params = [f"__global {TYPES[stored_as].storage}* p"]
    values: list[str] = []  # declarations of a0, a1, ...
    tensors = ["p"]
    scalars: list[str] = []
    for k, letter in enumerate(operands):
        if k not in row.uses:
            continue
        if letter == "N":
            values.append(f"const C a{k} = {row.defaults[f'a{k}']};")
        elif letter in "ST":
            params.append(f"const {c_type} a{k}")
        else:
            params.append(f"__global const {TYPES[letter].storage}* p{k}")
            wanted = BOOL if k in row.conditions else computed_as
            at = {"0": "0", "1": "x", "n": f"x * layout.stride[{len(tensors)}][0]"}
            index = at[strides[len(tensors)]]
            kind = "uchar" if wanted == BOOL else "C"
            values.append(
                f"const {kind} a{k} = {load(f'p{k}', index, letter, wanted)};"
            )
            tensors.append(f"p{k}")
    for name, is_given in zip(row.params, given, strict=True):
        if is_given == "P":
            params.append(f"const {c_type} arg_{name}")
        else:
            scalars.append(f"  const C arg_{name} = {row.defaults[name]};")
    target = {"0": "0", "1": "x", "n": "x * layout.stride[0][0]"}[strides[0]]
    result = row.with_prefixes(_expression(row, variant, computed_as))
    if row.kind.result == "boolean":
        write = store("p", target, f"({result}) != 0", BOOL, stored_as)
    elif row.kind.result == "real":
        write = store("p", target, result, real_of(computed_as), stored_as)
    else:
        write = store("p", target, result, computed_as, stored_as)
    text = fill(
        "pointwise",
        entry=(entry := _entry(row, variant, layout, operands, stored_as)),
        dims=dims,
        tensors=len(tensors),
        by_group=int(device["vector_width"] >= WIDE),
        params=", ".join(params),
        outer="\n".join([*scalars, *_outer_loops(dims, tensors)]),
        body=_indent([*values, f"{write};"], 2),
    )
    in_double = row.in_double and computed_as == "f"
    definitions = prelude(computed_as, stored_as, row.functions, in_double)
    # PyTorch's kernel of pow has no separate form for a scalar in float16.
    by_scalar = int(operands[1:2] == "S" and stored_as != "h")
    whole = f"#define A1_IS_SCALAR {by_scalar}\n{definitions}{text}"
    return Source(entry, whole if in_double else finished(whole, computed_as))


def _split_layout(layout: str, operands: str, row: Row) -> tuple[int, str]:
    """Number of dimensions, and the inner stride of each tensor ("1", "0", "n")."""
    inputs = sum(x not in "STN" and k in row.uses for k, x in enumerate(operands))
    return int(layout[: -inputs - 1]), layout[-inputs - 1 :]


def _outer_loops(dims: int, tensors: Sequence[str]) -> list[str]:
    """Statements that move the pointers to the work-item's line along dimension 0."""
    if dims == 1:
        return []
    lines = [
        "  const long i1 = get_global_id(1);",
        "  if (i1 >= layout.size[1]) return;",
    ]
    if dims > 2:
        lines.append("  long rest = get_global_id(2);")
    for d in range(2, dims):
        lines.append(f"  const long i{d} = rest % layout.size[{d}];")
        lines.append(f"  rest /= layout.size[{d}];")
    for t, pointer in enumerate(tensors):
        terms = [f"i{d} * layout.stride[{t}][{d}]" for d in range(1, dims)]
        lines.append(f"  {pointer} += {' + '.join(terms)};")
    return lines


def reduction_source(
    row: Reduction, template: str, fields: Sequence[str], device: DeviceTraits
) -> Source:
    """Fields: stage, dimensions kept, dimensions reduced, and inner stride ("w1,2,n");
    types of input, output and computation."""
    layout, types = fields
    read_as, stored_as, computed_as = tuple(types)
    stage, (kept, reduced, inner) = layout[0], layout[1:].split(",")
    # Only the first pass transforms, only the last one finishes.
    transform = "a0" if stage == "f" else row.transform
    finish = "acc" if stage == "p" else row.finish
    element_as = computed_as
    if row.kind.result == "boolean":
        # The predicate is evaluated on the element itself, not on a converted one.
        element_as = {"h": "f", "b": "f"}.get(read_as, read_as)
    lanes, attributes = sub_group(device)
    values = {
        "entry": (entry := _entry(row, template, stage, kept, reduced, inner, types)),
        "kept": kept,
        "reduced": reduced,
        "in_type": TYPES[read_as].storage,
        "in_compute": TYPES[element_as].compute,
        "out_type": TYPES[stored_as].storage,
        "load": load("in", "i", read_as, element_as),
        "store": store("out", "i", finish, computed_as, stored_as),
        "transform": converted(transform, element_as, computed_as),
        "combine": row.combine,
        "identity": row.identity,
        "partial": int(stage == "p"),
        "inner_stride": {
            ("reduce_inner", "n"): " * layout.stride[0]",
            ("reduce_outer", "n"): " * layout.kept_in[0]",
        }.get((template, inner), ""),
        "attributes": attributes,
    }
    in_double = row.in_double and computed_as == "f"
    parts = [lanes, prelude(computed_as, stored_as, in_double=in_double)]
    parts += [fill("reduction", **values), fill(template, **values)]
    text = "\n".join(parts)
    return Source(entry, text if in_double else finished(text, computed_as))


def softmax_source(
    row: Softmax, template: str, fields: Sequence[str], device: DeviceTraits
) -> Source:
    """Fields: none; type of the tensors and of the computation."""
    letter, computed_as = tuple(fields[1])
    inputs = 2 if row.summand else 1
    storage = TYPES[letter].storage
    params = [f"__global {storage}* p"]
    params += [f"__global const {storage}* p{k}" for k in range(inputs)]
    body = fill(
        "softmax_backward" if row.summand else "softmax_forward",
        load0=load("p0", "i", letter, computed_as),
        load1=load("p1", "i", letter, computed_as),
        summand=row.summand,
        store=store("p", "i", row.expression, computed_as, letter),
    )
    lanes, attributes = sub_group(device)
    entry = _entry(row, template, letter)
    kernel = fill(
        template,
        entry=entry,
        attributes=attributes,
        params=", ".join(params),
        across=fill("across"),
        body=body,
    )
    text = "\n".join([lanes, prelude(computed_as, letter), kernel])
    return Source(entry, finished(text, computed_as))


def matmul_source(row: AnyRow, template: str, fields: Sequence[str]) -> Source:
    """Fields: see `matmul_values`."""
    _, types, adds, activation = fields
    stored_as, computed_as, letter = tuple(types)
    entry = _entry(row, template, letter, adds, activation)
    kernel = fill(template, entry=entry, **matmul_values(template, fields))
    definitions = prelude(computed_as, stored_as)
    return Source(entry, finished(definitions + kernel, computed_as))


def step_code(row: CustomKernel, fields: Sequence[str], device: DeviceTraits) -> Source:
    """Fields: number of the step; type of the computation; arguments of the step."""
    number, computed_as, described = fields
    step = row.steps[int(number)]
    lanes, attributes = sub_group(device) if step.lanes else ("", "")
    entry = _entry(row, number, computed_as)
    kernel = fill(
        "custom_kernel",
        entry=entry,
        functions=row.functions,
        attributes=attributes,
        lane=fill("lanes") if step.lanes else "",
        **custom_kernel_values(step, described, computed_as),
    )
    definitions = prelude(computed_as, computed_as, row.templates)
    text = "\n".join([lanes, definitions, kernel])
    return Source(entry, finished(text, computed_as))


def attention_source(
    row: Attention, template: str, fields: Sequence[str], device: DeviceTraits
) -> Source:
    """Fields: see `attention_values`."""
    size, types, mask, causal = fields
    lanes, attributes = sub_group(device)
    entry = _entry(row, template, size, types, mask, causal)
    values = attention_values(fields)
    parts = [
        lanes,
        f"#define EMBED {size}",
        f"#define CAUSAL {int(bool(causal))}",
        prelude(types[1], types[0]),
        *(
            fill(name, entry=entry, attributes=attributes, **values)
            for name in templates_of(template)
        ),
    ]
    return Source(entry, finished("\n".join(parts), types[1]))


def source_of(
    row: AnyRow, template: str, fields: Sequence[str], device: DeviceTraits
) -> Source:
    """The kernel of `row` for `template` and `fields`, which are parts of a key."""
    if isinstance(row, Row):
        return pointwise_source(row, fields, device)
    if isinstance(row, Reduction):
        return reduction_source(row, template, fields, device)
    if isinstance(row, Softmax):
        return softmax_source(row, template, fields, device)
    if isinstance(row, CustomKernel):
        return step_code(row, fields, device)
    if isinstance(row, Attention):
        return attention_source(row, template, fields, device)
    return matmul_source(row, template, fields)
