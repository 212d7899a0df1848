"""The source of one step of a row, for the arguments described in a kernel key."""

import re
from dataclasses import dataclass

from xpurt.kernels.kinds.custom_kernel import Step
from xpurt.kernels.kinds.element_types import (
    BOOL,
    TYPES,
    converted,
    is_complex,
    load,
    real_of,
    store,
)

# Names of arguments that mean something else in OpenCL C, a type and a function. The text
# writes a.arg_C and a.arg_step. A driver may define its functions as macros.
NO_MACRO = ("C", "step")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument as a key describes it: "self=f2" is a tensor of two dimensions."""

    name: str
    kind: str  # a letter of a type, or one of "N", "I", "D", "L", "'"
    rest: str  # dimensions, length or text

    @property
    def is_tensor(self) -> bool:
        return self.kind in TYPES

    @property
    def is_given(self) -> bool:
        return self.kind != "N"


def arguments_of(described: str) -> list[Argument]:
    """The arguments of a key. Raises ValueError for a text that C++ does not write."""
    found = []
    for each in described.split(","):
        name, _, value = each.partition("=")
        if not name or not value:
            raise ValueError(f"no argument of a custom kernel is described by {each!r}")
        found.append(Argument(name, value[0], value[1:]))
    return found


def members(arguments: list[Argument], real: str) -> list[str]:
    """Members of the structure, 8 bytes each: see Note [Arguments of custom
    kernels]."""
    lines = ["long work_items, row;"]
    for each in arguments:
        name = each.name
        if each.is_tensor:
            lines.append(f"long numel_{name};")
            if int(each.rest) > 0:
                lines.append(f"long size_{name}[{each.rest}];")
                lines.append(f"long stride_{name}[{each.rest}];")
        elif each.kind == "I":
            lines.append(f"long arg_{name};")
        elif each.kind == "D" and real == "double":
            lines.append(f"double arg_{name};")
        elif each.kind == "D":
            lines.append(f"float arg_{name}, low_{name};")
        elif each.kind == "L" and int(each.rest) > 0:
            lines.append(f"long arg_{name}[{each.rest}];")
    return lines


def pointers(arguments: list[Argument], step: Step) -> list[str]:
    """Parameters of the kernel for the tensors that the step uses."""
    params = []
    for each in arguments:
        if not each.is_tensor or each.name not in (*step.reads, *step.writes):
            continue
        const = "" if each.name in step.writes else "const "
        params.append(
            f"__global {const}{TYPES[each.kind].storage}* restrict p_{each.name}"
        )
    return params


def definitions(
    arguments: list[Argument], computed_as: str, real: str, text: str
) -> list[str]:
    """Macros through which `text` reads and writes the arguments."""
    lines = []
    for each in arguments:
        name = each.name
        lines.append(f"#define HAS_{name} {int(each.is_given)}")
        if name in NO_MACRO and not each.is_tensor:
            continue
        if each.is_tensor:
            lines += of_tensor(each)
            if f"{name}_element(" in text:
                lines.append(f"#define {name}_element(i) {element(each)}")
            if f"{name}_OF(" in text:
                lines += arithmetic(each, computed_as)
            if f"{name}_WIDE" in text:
                lines += wider(each)
        elif each.kind in "ID":
            lines.append(f"#define {name} (a.arg_{name})")
            if each.kind == "D":
                low = "0" if real == "double" else f"(a.low_{name})"
                lines.append(f"#define LOW_{name} {low}")
        elif each.kind == "L":
            lines.append(f"#define {name}_COUNT {each.rest}")
            lines.append(f"#define {name} (a.arg_{name})")
        elif each.kind == "'":
            lines.append(f"#define {name}_IS_{each.rest} 1")
    return lines + of_lists(arguments)


def arithmetic(tensor: Argument, computed_as: str) -> list[str]:
    """A macro that converts a value of the computation to the tensor's type. One of both
    may be complex and the other real. For a real tensor the imaginary part is dropped,
    as in PyTorch."""
    name, letter = tensor.name, tensor.kind
    value = converted("v", computed_as, letter)
    if is_complex(computed_as) and not is_complex(letter):
        value = converted("(v).x", real_of(computed_as), letter)
    return [f"#define {name}_OF(v) {value}"]


def wider(tensor: Argument) -> list[str]:
    """Macros of the type in which many values of the tensor's type are combined, and of
    a product in it: double for float, where the device has it."""
    name, own = tensor.name, TYPES[tensor.kind].compute
    plain = f"#define {name}_WIDE {own}"
    lines = [
        f"#define {name}_IS_FLOAT {int(own.startswith('float'))}",
        plain,
        f"#define {name}_WIDENED(v) (v)",
        f"#define {name}_NARROWED(v) (v)",
    ]
    product = "((p) * (q))"
    if is_complex(tensor.kind):
        parts = "(p).x * (q).x - (p).y * (q).y, (p).x * (q).y + (p).y * (q).x"
        product = f"(({name}_WIDE)({parts}))"
    lines = [f"#define {name}_TIMES(p, q) {product}", *lines]
    if not own.startswith("float"):
        return lines
    wide = own.replace("float", "double")
    return [
        *lines[:2],
        "#ifdef cl_khr_fp64",
        f"#define {name}_WIDE {wide}",
        f"#define {name}_WIDENED(v) convert_{wide}(v)",
        f"#define {name}_NARROWED(v) convert_{own}(v)",
        "#else",
        *lines[2:],
        "#endif",
    ]


def of_lists(arguments: list[Argument]) -> list[str]:
    """Macros for lists of tensors."""
    lists: dict[str, list[Argument]] = {}
    for each in arguments:
        match = re.fullmatch(r"(\D+)\d+", each.name)
        if match and (each.is_tensor or not each.is_given):
            lists.setdefault(match[1], []).append(each)
    lines = []
    for name, elements in lists.items():
        given = [k for k, each in enumerate(elements) if each.is_given]
        adjacent = not given or given[-1] - given[0] + 1 == len(given)
        lines += [
            f"#define {name}_EACH(say) {' '.join(f'say({k})' for k in given)}",
            f"#define {name}_GIVEN {len(given)}",
            f"#define {name}_FIRST {given[0] if given else 0}",
            f"#define {name}_ADJACENT {int(adjacent)}",
            f"#define {name}_RANK {elements[given[0]].rest if given else 0}",
        ]
    return lines


def unraveled(tensor: str, arguments: str) -> str:
    """The call for the tensor's number of elements, which is the same for all lanes. The
    number of work-items would not do: one of them may walk through all elements."""
    few, many = f"unravel_int32({arguments}, index)", f"unravel({arguments}, index)"
    return f"(a.numel_{tensor} >> 31 == 0 ? {few} : {many})"


def element(tensor: Argument) -> str:
    """The offset of the i-th element in row-major order."""
    name, rank = tensor.name, int(tensor.rest)
    if rank == 0:
        return "0L"
    if rank == 1:
        return f"((i) * a.stride_{name}[0])"
    return f"offset_of({rank}, a.numel_{name}, a.size_{name}, a.stride_{name}, i)"


def of_tensor(tensor: Argument) -> list[str]:
    name, letter, rank = tensor.name, tensor.kind, int(tensor.rest)
    loaded = load(f"p_{name}", "o", letter, letter)
    # C converts a value of any type; a bool needs a comparison.
    computed = TYPES[letter].compute
    given = "((v) != 0)" if letter == BOOL else f"(({computed})(v))"
    stored = store(f"p_{name}", "o", given, letter, letter)
    lines = [
        f"#define {name}_load(o) ({loaded.replace('[o]', '[(o)]')})",
        f"#define {name}_store(o, v) {stored.replace('[o]', '[(o)]')}",
        f"#define {name}_RANK {rank}",
        f"#define {name}_T {computed}",
        f"#define {name}_numel (a.numel_{name})",
    ]
    if rank == 0:
        return [
            *lines,
            f"#define {name}_size(d) 1L",
            f"#define {name}_stride(d) 0L",
            f"#define {name}_at(index) 0L",
            f"#define {name}_unravel(i, index) 0L",
            f"#define {name}_line(i, dim, index) 0L",
        ]
    sized = f"a.size_{name}, a.stride_{name}"
    return [
        *lines,
        f"#define {name}_size(d) (a.size_{name}[d])",
        f"#define {name}_stride(d) (a.stride_{name}[d])",
        f"#define {name}_at(index) offset_at({rank}, a.stride_{name}, index)",
        f"#define {name}_unravel(i, index) {unraveled(name, f'{rank}, {sized}, i, -1')}",
        f"#define {name}_line(i, dim, index) "
        f"{unraveled(name, f'{rank}, {sized}, i, wrapped(dim, {rank})')}",
    ]


def custom_kernel_values(
    step: Step, described: str, computed_as: str
) -> dict[str, str]:
    """The values for the template "custom_kernel"."""
    arguments = arguments_of(described)
    params = pointers(arguments, step)
    if step.faults:
        params.append("volatile __global int* fault")
    real = "double" if real_of(computed_as) == "d" else "float"
    work_item = "work_item_of_lanes()" if step.lanes else "get_global_id(0)"
    return {
        "members": "\n  ".join(members(arguments, real)),
        "definitions": "\n".join(definitions(arguments, computed_as, real, step.text)),
        "params": ", ".join([*params, "const Arguments a"]),
        "work_item": work_item,
        "text": step.text.strip("\n"),
    }
