"""One fused kernel of OpenCL C, from Inductor's loops.

A kernel without a reduction computes one element per work-item: dimension 0 of the
range is Inductor's x, the fastest one, then y and z. opencl_reductions.py has the forms
of the others.
"""

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import sympy
import torch
from torch._inductor.codegen.common import CSEVariable, DeferredLine, PythonPrinter
from torch._inductor.codegen.simd import IterationRangesEntry, SIMDKernel
from torch._inductor.utils import IndentedBuffer, sympy_index_symbol
from torch.utils._ordered_set import OrderedSet

from xpurt.compiler import current
from xpurt.compiler.opencl_arguments import (
    arguments_of,
    parts_of_range,
    sizes_of,
    text_of,
)
from xpurt.compiler.opencl_expressions import OpenCLExpressions
from xpurt.compiler.opencl_ranges import Parts, parts_of
from xpurt.compiler.opencl_reductions import (
    accumulator,
    before_combining,
    combination,
)
from xpurt.compiler.opencl_tiles import is_transposed
from xpurt.compiler.opencl_types import (
    IndexPrinter,
    SmallIndexPrinter,
    computed,
    computed_letter,
    letter_of,
    literal,
    value_type,
)
from xpurt.compiler.opencl_variables import TypedCSE
from xpurt.kernels import Functions, load, store

_SMALL = 1 << 31  # elements
_LEAST_OF_LANES = 256  # elements of a loop that the lanes of a sub-group divide


class OpenCLKernel(SIMDKernel[Any]):
    """A kernel that is being generated."""

    overrides = OpenCLExpressions
    suffix = ";"
    newvar_prefix = "const "
    sexpr = staticmethod(IndexPrinter().doprint)
    kexpr = sexpr

    def __init__(self, tiling: dict[str, sympy.Expr], **kwargs: Any) -> None:
        super().__init__(tiling, **kwargs)
        self.cse = TypedCSE(self.newvar_prefix, self.suffix)
        self._index_dtype = torch.int64
        self.functions: dict[Functions, None] = {Functions("l"): None}
        self.templates: dict[str, None] = {}
        self.faults = False
        self.index_variables: set[str] = set()  # those of loaded indices
        self.reduces = self.inside_reduction
        # A work-item, not a sub-group, computes one result of the reductions.
        self.one_lane = False
        self.accumulators = IndentedBuffer()  # their declarations
        self.combinations = IndentedBuffer()  # after the loop
        self.late_stores = IndentedBuffer()  # of what the loop reduced
        self.kept: OrderedSet[CSEVariable] = OrderedSet()  # live after the loops
        self.numbers = itertools.count()
        self.entries: list[IterationRangesEntry] = []
        self.loop_entries: list[IterationRangesEntry] = []  # of the current loop
        self.main_loads = self.loads
        # Expressions of transposed elements, and their types: see opencl_tiles.py.
        self.tiles: dict[str, str] = {}
        device = current.graph().get_current_device_or_throw()
        self.has_fp64 = torch.xpu.get_device_properties(device).has_fp64

    def dtype_to_str(self, dtype: torch.dtype) -> str:
        return value_type(dtype)

    def finalize_indexing(self, indices: Sequence[sympy.Expr]) -> None:
        """Chooses the form of the reductions by the strides of all accesses."""
        if not self.reduces:
            return
        along = across = 0
        root = self._reduced_tree()
        of_result = next(tree for tree in self.range_trees if tree.prefix == "x")
        for index in indices:
            with suppress(AttributeError, TypeError):
                strides = self.get_strides_of_load(index)
                inner = strides[sympy_index_symbol(root.name)]
                outer = strides[sympy_index_symbol(of_result.name)]
                along += int(inner == 1)
                across += int(outer == 1 and inner != 0)
        short = current.graph().sizevars.optimization_hint(root.numel, fallback=64) < 16
        self.one_lane = across > along or (short and across >= along)

    def _reduced_tree(self) -> Any:
        return next(tree for tree in self.range_trees if tree.prefix.startswith("r"))

    # Accesses.

    def _hoists(self, index: sympy.Expr) -> bool:
        """Whether a load does not depend on the loop that is being generated."""
        if not self.inside_reduction or self.loads is not self.main_loads:
            return False
        nodes = (self.range_tree_nodes.get(each) for each in index.free_symbols)
        return not any(
            node is not None and node.prefix.startswith("r") for node in nodes
        )

    def load(self, name: str, index: sympy.Expr) -> Any:
        pointer = self.args.input(name)
        dtype = current.graph().get_dtype(name)
        letter = letter_of(dtype)
        if current.is_number(name):  # a number on the CPU, passed by value
            line = pointer
        else:
            transposed = self.loads is self.main_loads and is_transposed(self, index)
            index = self.prepare_indexing(index)
            at = self.index_to_str(index)
            line = load(pointer, at, letter, computed_letter(dtype))
            if transposed:
                line = self._of_tile(line, value_type(dtype))
        if not self._hoists(index):
            return self.cse.generate(self.loads, line, dtype=dtype)
        found = self.cse.generate(self.body, line, dtype=dtype)
        self.kept.add(found)
        return found

    def _of_tile(self, line: str, type_: str) -> str:
        self.tiles[line] = type_
        return f"TILE{list(self.tiles).index(line)}"

    def store(
        self, name: str, index: sympy.Expr, value: Any, mode: str | None = None
    ) -> None:
        line = self._store_line(name, index, value, mode)
        if self.reduces and not self.inside_reduction:
            line = self._once(line)
        self.stores.writeline(DeferredLine(name, line))

    def store_reduction(self, name: str, index: sympy.Expr, value: Any) -> None:
        line = self._once(self._store_line(name, index, value, None))
        self.late_stores.writeline(DeferredLine(name, line))

    def _store_line(
        self, name: str, index: sympy.Expr, value: Any, mode: str | None
    ) -> str:
        pointer = self.args.output(name)
        at = self.index_to_str(self.prepare_indexing(index))
        dtype = current.graph().get_dtype(name)
        of = value.dtype if isinstance(value, CSEVariable) else dtype
        letter = letter_of(dtype)
        text = literal(value, computed(dtype))
        if mode == "atomic_add":
            self.templates |= {"compiled/bits": None, "compiled/atomics": None}
            return f"atomic_add_{letter}({pointer} + {at}, {text});"
        if mode is not None:
            raise NotImplementedError(f"no store of the mode {mode}")
        return store(pointer, at, text, computed_letter(of), letter) + ";"

    def _once(self, line: str) -> str:
        """A statement that one lane of a sub-group executes."""
        return line if self.one_lane else f"if (lane == 0) {{ {line} }}"

    # Values that are more than an expression.

    def masked(self, mask: Any, body: Callable[[], Any], other: Any) -> Any:
        """The value of `body` where the mask is set; elsewhere nothing of it runs."""
        scope = IndentedBuffer()
        with self.swap_buffers(scope), scope.indent(), self.mask_loads(mask, other):
            value = body()
        dtype = value.dtype
        rest = literal(other, dtype)
        key = f"{mask}:{scope.getvalue()}:{value}:{rest}"
        found = self.cse.try_get(key)
        if found is None:
            found = self.cse.newvar(dtype=dtype)
            self.cse.put(key, found)
            self.compute.writeline(f"{value_type(dtype)} {found} = {rest};")
            self.compute.writeline(f"if ({mask}) {{")
            self.compute.splice(scope)
            self.compute.writeline(f"  {found} = {value};")
            self.compute.writeline("}")
        return found

    def index_variable(self, value: Any) -> sympy.Symbol:
        """A variable of 64 bits for a loaded index, which check_bounds() may change."""
        key = f"index {value}"
        found = self.cse.try_get(key)
        if found is None:
            found = self.cse.newvar(dtype=torch.int64)
            self.cse.put(key, found)
            self.index_variables.add(str(found))
            self.compute.writeline(f"long {found} = {value};")
        return sympy_index_symbol(str(found))

    def check_bounds(
        self, expr: sympy.Expr, size: sympy.Expr, lower: bool, upper: bool
    ) -> None:
        """Reports an index out of range by the fault word, and reads element 0."""
        if not (lower or upper):
            return
        at, most = self.index_to_str(expr), self.index_to_str(size)
        tests = [f"{at} < 0"] * lower + [f"{at} >= {most}"] * upper
        self.faults = True
        # With debug_index_asserts the position of a loop is checked, too.
        change = f" {at} = 0;" if str(expr) in self.index_variables else ""
        line = f"if ({' || '.join(tests)}) {{ *fault = -1;{change} }}"
        key = f"checked {line}"
        if self.cse.try_get(key) is None:
            self.cse.put(key, self.cse.newvar(dtype=torch.bool))
            self.compute.writeline(line)

    def device_assert_async(self, cond: Any, msg: str) -> None:
        self.faults = True
        self.compute.writeline(f"if (!({cond})) *fault = -1;  // {msg!r}")

    def fraction_and_exponent(self, value: Any) -> tuple[Any, Any]:
        exponent = self.cse.newvar(dtype=torch.int32)
        fraction = self.cse.newvar(dtype=computed(value.dtype))
        type_ = value_type(fraction.dtype)
        self.compute.writeline(f"int {exponent};")
        self.compute.writeline(
            f"const {type_} {fraction} = frexp({value}, &{exponent});"
        )
        return fraction, exponent

    def reduction(
        self,
        dtype: torch.dtype,
        src_dtype: torch.dtype,
        reduction_type: Any,
        value: Any,
    ) -> Any:
        key = (src_dtype, reduction_type, value)
        if key in self.cse.reduction_cache:
            return self.cse.reduction_cache[key]
        root = self._reduced_tree()
        number = next(self.numbers)
        made = accumulator(
            number, reduction_type, dtype, src_dtype, value, str(root.index_sym())
        )
        self.accumulators.writeline(made.declare)
        self.compute.writeline(made.add)
        self.combinations.writeline(before_combining(number, reduction_type))
        if not self.one_lane:
            self.combinations.splice(combination(made))
        variables = []
        for result in made.results:
            of = computed(dtype)
            if result.startswith("at"):
                of = torch.int64
            elif result.startswith("best"):
                of = computed(src_dtype)
            variable = self.cse.newvar(dtype=of)
            self.combinations.writeline(
                f"const {value_type(of)} {variable} = {result};"
            )
            self.kept.add(variable)
            variables.append(variable)
        found: Any = variables[0] if len(variables) == 1 else tuple(variables)
        self.cse.reduction_cache[key] = found
        return found

    # The text.

    def codegen_iteration_ranges_entry(self, entry: IterationRangesEntry) -> None:
        """The index is defined before the elements that use it: see index_lines()."""
        entries = self.loop_entries if entry.root.is_loop else self.entries
        entries.append(entry)

    def index_text(self, entry: IterationRangesEntry) -> str:
        """An entry's index, by that of its range."""
        numel = entry.root.numel
        small = isinstance(numel, sympy.Integer) and int(numel) < _SMALL
        printer = SmallIndexPrinter() if small else IndexPrinter()
        return str(printer.doprint(self.rename_indexing(entry.expr)))

    def index_lines(self, entries: Sequence[Any], parts: Parts | None) -> list[str]:
        """The definitions of indices."""
        lines = []
        for entry in entries:
            index = self.index_text(entry)
            if parts is not None and entry.prefix == parts.prefix:
                index = parts.index_of(entry)
            lines.append(f"const long {entry.name} = {index};")
        return lines

    def codegen_body(self) -> None:
        """Moves what was generated since the last call into the body: within a loop,
        if it is for elements that are reduced."""
        parts = (self.loads, self.compute, self.stores)
        after = (self.combinations, self.late_stores)
        if not any((*parts, *after)):
            return
        roots = [tree for tree in self.range_trees if tree.is_loop]
        inner = IndentedBuffer()
        for each in parts:
            inner.splice(each)
            each.clear()
        if self.inside_reduction and roots:
            self.body.splice(self.accumulators)
            self.accumulators.clear()
            (root,) = roots
            self.body.splice(self._loop(root, inner))
            self.cse.invalidate(self.kept)
            root.cache_clear()
            self.loop_entries.clear()
        else:
            self.body.splice(inner)
            self.kept |= OrderedSet(self.cse._cache.values())
            self.kept |= OrderedSet(self.cse.store_cache.values())
        for each in after:
            self.body.splice(each)
            each.clear()

    def size_of(self, tree: Any) -> str:
        """The number of elements of a range, in the kernel's text."""
        if isinstance(tree.numel, sympy.Integer):
            return str(tree.numel)
        return f"{tree.prefix}numel"

    def codegen_kernel(self, name: str = "KERNEL_NAME") -> str:
        """The text of the kernel, with a name that is replaced by its own."""
        self.codegen_body()
        # They may need more sizes as arguments.
        self.definitions = self.index_lines(self.entries, parts_of_range(self))
        self.arguments = arguments_of(self)
        return text_of(self, name, self.arguments)

    def call_kernel(
        self, name: str, node: Any = None, deallocate_ws: bool = True
    ) -> None:
        """Writes the call of the kernel."""
        passed = [each.passed for each in self.arguments]
        sizes, known = sizes_of(self)
        if not known:
            passed += map(PythonPrinter().doprint, sizes)
        current.graph().wrapper_code.writeline(f"{name}({', '.join(passed)})")

    def _loop(self, root: Any, inner: IndentedBuffer) -> IndentedBuffer:
        """The loop around `inner`. Its lines stay what they are: a store of a buffer
        that turns out to be needed in this kernel alone is left out at the end."""
        least = 2 if self.one_lane else _LEAST_OF_LANES
        parts = parts_of(root, self.loop_entries, least)
        at = str(root.index_sym())
        body = IndentedBuffer()
        if parts is not None:
            whole = f"{parts.outer} * {parts.inner_size} + {parts.inner}"
            body.writeline(f"const long {at} = {whole};")
        body.writelines(self.index_lines(self.loop_entries, parts))
        body.splice(inner)
        if parts is None:
            return self._loop_over(at, self.size_of(root), root.prefix, body)
        size = str(parts.inner_size)
        found = IndentedBuffer()
        found.writeline(
            f"for (long {parts.outer} = 0; {parts.outer} < {parts.outer_size}; "
            f"++{parts.outer}) {{"
        )
        found.splice(self._loop_over(parts.inner, size, root.prefix, body))
        found.writeline("}")
        return found

    def _loop_over(
        self, at: str, size: str, prefix: str, body: IndentedBuffer
    ) -> IndentedBuffer:
        found = IndentedBuffer()
        if self.one_lane:
            found.writeline(f"for (long {at} = 0; {at} < {size}; ++{at}) {{")
            found.splice(body)
            found.writeline("}")
            return found
        begin = f"{prefix}begin"
        found.writeline(f"{{ long {begin} = 0;")
        found.writeline(f"for (; {begin} + LANES <= {size}; {begin} += LANES) {{")
        found.writeline(f"const long {at} = {begin} + lane;")
        found.splice(body)
        found.writeline("}")
        # Whole groups of lanes need no guard.
        if size.isdigit():
            found.writeline(f"#if {size} % LANES")
        found.writeline(f"if ({begin} + lane < {size}) {{")
        found.writeline(f"const long {at} = {begin} + lane;")
        found.splice(body)
        found.writeline("}")
        if size.isdigit():
            found.writeline("#endif")
        found.writeline("}")
        return found
