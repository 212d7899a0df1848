"""Kernels with an operand that is adjacent along the second dimension of the range.

Note [Tiles of transposed operands]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Work-items that are neighbours along x write adjacent elements, but read a transposed
operand from as many cache lines. So a work-group of 16 work-items computes a tile of 16 by
16 elements. It first copies the tile of each transposed operand to local memory, with
neighbours along y reading adjacent elements. Then work-item `lane` computes the elements
of its column, one per step. Both loops are unrolled: a driver for a CPU then keeps the
tile in vector registers, and transposes it by shuffles. Tiles at the edge of the range
read their operands element by element.

Measured by processor time of one thread on a CPU device (AMD Zen 4, 2026-11-25, beside
other programs, minimum of nine rounds that alternate): x + y.T of (2048, 2048) in floats
takes 10.9 ms in work-groups of 16 by 16 without local memory, 4.2 to 4.6 in this way, and
6.7 to 7.5 in Inductor's code for the CPU.

Rejected: work-groups of 16 by 16 with local memory, 10.7 to 16.9, since the driver reads or
writes one side of the tile element by element; tiles of 16 by 32 and by 64, 10.4 and 5.2; a
transposition by shuffles of sub-groups, 8.4; loops that are not unrolled, 9.5 to 10.8.
"""

from collections.abc import Iterable
from typing import Any, Final

import sympy
from torch._inductor.utils import IndentedBuffer, sympy_index_symbol
from torch.utils._sympy.functions import FloorDiv
from torch.utils._sympy.symbol import SymT, symbol_is_type

SIDE: Final = 16
GROUP: Final = (SIDE, 1, 1)
_UNROLLED: Final = f"__attribute__((opencl_unroll_hint({SIDE})))"

# The id within the sub-group shows the driver that the elements of lanes are adjacent.
_LANE: Final = f"""
#if LANES == {SIDE}
const long lane = lane_id();
#else
const long lane = get_local_id(0);
#endif
"""
ATTRIBUTES: Final = f"""
#if LANES == {SIDE}
SUB_GROUP
#endif
__attribute__((reqd_work_group_size{GROUP!r}))
"""


def is_transposed(kernel: Any, index: sympy.Expr) -> bool:
    """Whether elements with this index are adjacent along y, and not along x."""
    trees = {tree.prefix: tree for tree in kernel.range_trees}
    if kernel.reduces or not {"x", "y"} <= trees.keys():
        return False
    if any(
        symbol_is_type(each, (SymT.TMP, SymT.INDIRECT)) for each in index.free_symbols
    ):
        return False
    strides = kernel.get_strides_of_load(index)
    along_x, along_y = (
        strides[sympy_index_symbol(trees[prefix].name)] for prefix in "xy"
    )
    return bool(along_y == 1 and along_x != 0 and along_x != 1)


def tiles_along(size: sympy.Expr) -> sympy.Expr:
    """The number of tiles along a dimension of the range."""
    return FloorDiv(size + SIDE - 1, SIDE)


def write_tiles(kernel: Any, code: IndentedBuffer) -> None:
    """Writes the code of a kernel that has tiles, after the index along z."""
    trees = {tree.prefix: tree for tree in kernel.range_trees}
    loaded = list(kernel.tiles.items())
    for number, (_, type_) in enumerate(loaded):
        code.writeline(f"__local {type_} tile{number}[{SIDE * SIDE}];")
    code.splice(_LANE)
    code.writeline(f"const long xfirst = get_group_id(0) * {SIDE};")
    code.writeline(f"const long yfirst = get_group_id(1) * {SIDE};")
    x_size, y_size = (kernel.size_of(trees[prefix]) for prefix in "xy")
    code.writeline(
        f"if (xfirst + {SIDE} <= {x_size} && yfirst + {SIDE} <= {y_size}) {{"
    )
    _write_loop(kernel, code, "row", "lane")
    for number, (line, _) in enumerate(loaded):
        code.writeline(f"tile{number}[row * {SIDE} + lane] = {line};")
    code.writeline("}")
    code.writeline("barrier(CLK_LOCAL_MEM_FENCE);")
    _write_loop(kernel, code, "lane", "row")
    _write_body(
        kernel,
        code,
        (f"tile{number}[lane * {SIDE} + row]" for number in range(len(loaded))),
    )
    code.writeline("}")
    code.writeline("return;")
    code.writeline("}")
    code.writeline("const long xindex = xfirst + lane;")
    code.writeline(f"for (long row = 0; row < {SIDE}; ++row) {{")
    code.writeline("const long yindex = yfirst + row;")
    code.writeline(f"if (xindex >= {x_size} || yindex >= {y_size}) return;")
    code.splice("\n".join(kernel.index_lines(kernel.entries, None)))
    _write_body(kernel, code, (line for line, _ in loaded))
    code.writeline("}")


def _write_loop(kernel: Any, code: IndentedBuffer, at_x: str, at_y: str) -> None:
    """Begins the loop over the steps, in which a work-item is at these positions."""
    code.writeline(_UNROLLED)
    code.writeline(f"for (long row = 0; row < {SIDE}; ++row) {{")
    at = {"x": at_x, "y": at_y}
    for prefix, position in at.items():
        code.writeline(f"const long {prefix}index = {prefix}first + {position};")
    for entry in kernel.entries:
        position = at.get(entry.prefix, "")
        if not position or not _divides_tiles(entry):
            code.splice("\n".join(kernel.index_lines([entry], None)))
            continue
        # The same for the whole tile, but for the position along adjacent elements.
        first = kernel.index_text(entry).replace(
            f"{entry.prefix}index", f"{entry.prefix}first"
        )
        moved = f"{first} + {position}" if entry.divisor == 1 else first
        code.writeline(f"const long {entry.name} = {moved};")


def _divides_tiles(entry: Any) -> bool:
    """Whether no tile crosses the end of what has one quotient, or of a period."""
    sizes = (entry.divisor, entry.length)
    if not all(isinstance(size, sympy.Integer) for size in sizes):
        return False
    divisor, length = map(int, sizes)
    period = divisor * length
    whole = entry.root.numel == period
    return (divisor == 1 or divisor % SIDE == 0) and (whole or period % SIDE == 0)


def _write_body(kernel: Any, code: IndentedBuffer, elements: Iterable[str]) -> None:
    elements = list(elements)
    for number, element in enumerate(elements):
        code.writeline(f"#define TILE{number} {element}")
    code.splice(kernel.body.getvalue())
    for number in range(len(elements)):
        code.writeline(f"#undef TILE{number}")
