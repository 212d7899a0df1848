"""The arguments, the range and the text of a generated kernel.

Note [Lanes of generated kernels]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A driver for a CPU makes one vector of the work-items of a sub-group, 16 floats with
AVX-512. A vector's next instruction often needs the result of the one before: a sum, or a
function, which is a call of some dozens of instructions. The processor waits then, and
cannot look ahead to the next vector. In a sub-group of 64 work-items each step is made for
four vectors in turn, which do not depend on each other. So do kernels in which a work-item
computes one result of a reduction, and those without a reduction that call at least four
functions.

Measured by processor time of one thread on a CPU device (AMD Zen 4, 2026-11-25, beside
other programs, minimum of five to seven rounds that alternate), milliseconds. Sums over the
first dimension with sub-groups of 16 and 64: (4096, 4096) 10.5 and 6.3, in bfloat16 10.0
and 2.9, (1024, 1024) 0.23 and 0.10. Functions of 4M floats with 16, 32 and 64: ten one after
another 28.5, 19.3, 17.0; five 10.2, 8.9, 8.1; sin(exp(sin)) 5.5, 6.2, 5.1; tanh 3.7, 2.4,
2.2; sin(exp) 2.9, 3.3, 4.2; sin and cos of two operands 3.6, 4.5, 6.4; one exp, erf or no
function alike.

Rejected: sub-groups of 32 or 64 that combine their lanes. The driver emulates the shuffles:
softmax (4096, 4096) took 13.9, 20.6 and 40.5, layer norm (4096, 1024) 0.9, 11.9 and 42.4.
"""

import math
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch._inductor.codegen.common import (
    PythonPrinter,
    SizeArg,
    TensorArg,
)
from torch._inductor.dependencies import MemoryDep
from torch._inductor.utils import IndentedBuffer, sympy_product
from torch.utils._sympy.symbol import SymT, symbol_is_type

from xpurt.compiler import current
from xpurt.compiler.opencl_expressions import FUNCTION_CALLS
from xpurt.compiler.opencl_ranges import Parts, parts_of
from xpurt.compiler.opencl_tiles import ATTRIBUTES, GROUP, tiles_along, write_tiles
from xpurt.compiler.opencl_types import letter_of
from xpurt.kernels import TYPES as ELEMENT_TYPES

# Work-items of a work-group. In two dimensions the loads of one operand may be adjacent
# along the second one: a square keeps their cache lines within the group.
_LINE = 256
_SQUARE = (16, 16, 1)
_SUB_GROUPS = 64
_FOUR_VECTORS = 64  # work-items
_CALLS = 4  # see Note [Lanes of generated kernels]
_SHORTEST = 16  # work-items along dimension 0: a vector of floats


@dataclass(frozen=True, slots=True)
class Argument:
    """letter: see CompiledKernelSpec in rows/compiled_kernel.h. passed: Python text."""

    declaration: str
    letter: str
    passed: str


def arguments_of(kernel: Any) -> list[Argument]:
    """The arguments of a kernel whose code is complete, without the fault word."""
    names, passed, kinds, _ = kernel.args.python_argdefs()
    found = []
    for name, text, kind in zip(names, passed, kinds, strict=True):
        if isinstance(kind, TensorArg):
            found.append(_tensor(kernel, name.name, kind))
        elif isinstance(kind, SizeArg):
            found.append(_number(name.name, text))
        else:
            raise NotImplementedError(f"kernels take no {type(kind).__name__}")
    for tree in kernel.range_trees:
        if not isinstance(tree.numel, sympy.Integer):
            _compute_sizes(tree.numel)
            size = PythonPrinter().doprint(tree.numel)
            found.append(Argument(f"const long {tree.prefix}numel", "i", size))
    return found


def _compute_sizes(size: sympy.Expr) -> None:
    for symbol in sorted(size.free_symbols, key=str):
        current.graph().wrapper_code.ensure_size_computed(symbol)


def _tensor(kernel: Any, name: str, kind: TensorArg) -> Argument:
    buffer = kind.buffer
    if current.is_number(buffer):
        if not kind.dtype.is_floating_point:
            return Argument(f"const long {name}", "i", f"{buffer}.item()")
        letter = "d" if kind.dtype == torch.float64 else "f"
        type_ = ELEMENT_TYPES[letter].compute
        return Argument(f"const {type_} {name}", letter, f"{buffer}.item()")
    type_ = ELEMENT_TYPES[letter_of(kind.dtype)].storage
    if name.startswith(("in_ptr", "seed")):
        return Argument(f"__global const {type_}* {name}", "r", buffer)
    letter = "w" if name.startswith("out") and _overwrites(kernel, buffer) else "u"
    return Argument(f"__global {type_}* {name}", letter, buffer)


def _number(name: str, value: Any) -> Argument:
    text = (
        PythonPrinter().doprint(value) if isinstance(value, sympy.Expr) else str(value)
    )
    if isinstance(value, sympy.Symbol) and symbol_is_type(value, SymT.UNBACKED_FLOAT):
        return Argument(f"const float {name}", "f", text)
    return Argument(f"const long {name}", "i", text)


def _overwrites(kernel: Any, buffer: str) -> bool:
    """Whether the kernel certainly writes all elements of the buffer, and reads none.

    A part of a buffer, such as an operand of cat, is written by a kernel of its own.
    """
    made = current.graph().try_get_buffer(buffer)
    if made is None or buffer in current.graph().graph_inputs:
        return False
    numel = sympy_product(made.get_size())
    for node in kernel.features.scheduler_nodes():
        for write in node.read_writes.writes:
            if write.name != buffer or not isinstance(write, MemoryDep):
                continue
            whole = current.graph().sizevars.statically_known_equals(
                write.get_numel(), numel
            )
            return bool(whole and write.mode is None)
    return False


def parts_of_range(kernel: Any) -> Parts | None:
    """The two dimensions of a range in which adjacent work-items have adjacent
    elements."""
    trees = [tree for tree in kernel.range_trees if not tree.is_reduction]
    by_sub_group = kernel.reduces and not kernel.one_lane
    if by_sub_group or len(trees) != 1:
        return None
    return parts_of(trees[0], kernel.entries)


def group_of(kernel: Any) -> tuple[int, int, int]:
    """The sizes of the kernel's work-groups."""
    if kernel.reduces and not kernel.one_lane:
        return (_SUB_GROUPS, 1, 1)
    if kernel.tiles:
        return GROUP
    results = [tree for tree in kernel.range_trees if not tree.is_reduction]
    if len(results) > 1:
        return _SQUARE
    parts = parts_of_range(kernel)
    if parts is not None:
        # Whole groups, if a power of two divides the inner part.
        inner = math.gcd(parts.inner_size, _LINE)
        if inner < _SHORTEST:
            inner = min(_LINE, 1 << (parts.inner_size - 1).bit_length())
        return (inner, _LINE // inner, 1)
    size = results[0].numel if results else sympy.S.One
    if not isinstance(size, sympy.Integer):
        return (_LINE, 1, 1)
    most = _SUB_GROUPS if kernel.reduces else _LINE
    return (min(most, 1 << (int(size) - 1).bit_length() if int(size) > 1 else 1), 1, 1)


def sizes_of(kernel: Any) -> tuple[list[sympy.Expr], bool]:
    """The three sizes of the range, and whether all are known now."""
    parts = parts_of_range(kernel)
    if parts is not None:
        known = (parts.inner_size, parts.outer_size, 1)
        return [sympy.Integer(size) for size in known], True
    by_prefix = {tree.prefix: tree.numel for tree in kernel.range_trees}
    if kernel.tiles:
        by_prefix["y"] = tiles_along(by_prefix["y"])
    sizes = [by_prefix.get(prefix, sympy.S.One) for prefix in ("x", "y", "z")]
    return sizes, all(isinstance(size, sympy.Integer) for size in sizes)


def _attribute(kernel: Any) -> str:
    """What is before the kernel: see Note [Lanes of generated kernels]."""
    if kernel.reduces and not kernel.one_lane:
        return "SUB_GROUP"
    if kernel.tiles:
        return ATTRIBUTES
    if group_of(kernel)[0] < _FOUR_VECTORS:
        return ""
    counts = kernel.features.op_counts()
    calls = sum(counts[name] for name in FUNCTION_CALLS)
    return "FOUR_VECTORS" if kernel.reduces or calls >= _CALLS else ""


def text_of(kernel: Any, name: str, arguments: list[Argument]) -> str:
    """The definition of the kernel."""
    declared = [each.declaration for each in arguments]
    if kernel.faults:
        declared.append("volatile __global int* fault")
    code = IndentedBuffer()
    code.splice(_attribute(kernel), strip=True)
    code.writeline(f"__kernel void {name}(")
    code.writeline("    " + ",\n    ".join(declared) + ") {")
    with code.indent():
        for tree in kernel.range_trees:
            if tree.prefix == "z" or (tree.prefix == "y" and not kernel.tiles):
                _line_of_tree(kernel, tree, code)
        if kernel.tiles:
            write_tiles(kernel, code)
        else:
            _within_x(kernel, code)
    code.writeline("}")
    return str(code.getvalue())


def _line_of_tree(kernel: Any, tree: Any, code: IndentedBuffer) -> None:
    dimension = "xyz".index(tree.prefix)
    code.writeline(f"const long {tree.index_sym()} = get_global_id({dimension});")
    if not _fits(tree.numel, group_of(kernel)[dimension]):
        code.writeline(f"if ({tree.index_sym()} >= {kernel.size_of(tree)}) return;")


def _fits(size: sympy.Expr, group: int) -> bool:
    return isinstance(size, sympy.Integer) and int(size) % group == 0


def _within_x(kernel: Any, code: IndentedBuffer) -> None:
    trees = [tree for tree in kernel.range_trees if tree.prefix == "x"]
    parts = parts_of_range(kernel)
    body = "\n".join([*kernel.definitions, kernel.body.getvalue()])
    if not trees:
        code.splice(body)
        return
    (tree,) = trees
    at, size = str(tree.index_sym()), kernel.size_of(tree)
    if kernel.reduces and not kernel.one_lane:
        code.writeline(f"const long {at} = work_item_of_lanes();")
        code.writeline("const long lane = lane_id();")
        # All lanes of a sub-group have the same element.
        code.writeline(f"if ({at} >= {size}) return;")
        code.splice(body)
        return
    group = group_of(kernel)
    whole = _fits(tree.numel, group[0])
    if parts is not None:
        code.writeline(f"const long {parts.outer} = get_global_id(1);")
        if parts.outer_size % group[1]:
            code.writeline(f"if ({parts.outer} >= {parts.outer_size}) return;")
        at, size = parts.inner, str(parts.inner_size)
        whole = parts.inner_size % group[0] == 0
    code.writeline(f"const long {at} = get_global_id(0);")
    if whole:
        code.splice(body)
        return
    if not kernel.reduces:
        code.writeline("#if BY_GROUP  // whole work-groups run without a guard")
        code.writeline(
            f"if ((long)((get_group_id(0) + 1) * get_local_size(0)) <= {size}) {{"
        )
        code.splice(body)
        code.writeline("return;")
        code.writeline("}")
        code.writeline("#endif")
    code.writeline(f"if ({at} < {size}) {{")
    code.splice(body)
    code.writeline("}")
