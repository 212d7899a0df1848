"""Inductor's ops as expressions of OpenCL C.

A function has the same expression as the row of the eager op, from the same templates:
a compiled program computes the same numbers, and an improvement of a row is one of
compiled code, too.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import sympy
import torch
from torch._inductor.codegen.common import CSEVariable, OpOverrides
from torch._inductor.utils import get_bounds_index_expr
from torch._inductor.virtualized import ops

from xpurt.compiler import current
from xpurt.compiler.opencl_types import (
    IndexPrinter,
    computed,
    computed_letter,
    letter_of,
    literal,
    value_type,
)
from xpurt.kernels import Functions, call, converted, row_expression, row_named

# Inductor's ops of one and of two operands, and the rows whose expressions they have.
_BY_ROW: Final = {
    name: name
    for name in (
        "abs acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh digamma erf "
        "erfc erfinv exp exp2 expm1 floor hypot igamma igammac lgamma log log10 log1p "
        "log2 maximum minimum nextafter remainder round rsqrt sign sigmoid sin sinh "
        "sqrt tan tanh trunc i0"
    ).split()
} | {
    name: f"special_{name}"
    for name in (
        "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 erfcx i0e i1 i1e log_ndtr "
        "modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 "
        "ndtri scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 "
        "zeta"
    ).split()
}
_BY_FUNCTION: Final = {
    "truncdiv": "trunc_quotient",
    "floordiv": "floor_quotient",
    "ndtr": "normal_below",
    "bitwise_left_shift": "shift_left",
    "bitwise_right_shift": "shift_right",
    "lshift": "shift_left",
    "rshift": "shift_right",
}
_INFIX: Final = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "mul_rn": "*",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "gt": ">",
    "le": "<=",
    "ge": ">=",
    "logical_and": "&&",
    "logical_or": "||",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "and_": "&",
    "or_": "|",
    "xor": "^",
}


def need(functions: Functions) -> None:
    """Makes the current kernel define these functions."""
    current.kernel().functions[functions] = None


def need_templates(*names: str) -> None:
    """The same for the functions of templates that have one type."""
    current.kernel().templates.update(dict.fromkeys(names))


_RANDOM: Final = (
    "compiled/random_in_float",
    "random_types",
    "random",
    "compiled/random",
)


def dtype_of(operands: Sequence[Any]) -> torch.dtype:
    """The dtype in which an op computes its operands."""
    dtypes = [computed(x.dtype) for x in operands if isinstance(x, CSEVariable)]
    if not dtypes:
        is_float = any(isinstance(x, float) for x in operands)
        return torch.float32 if is_float else torch.int64
    found = dtypes[0]
    for each in dtypes[1:]:
        found = torch.promote_types(found, each)
    if not found.is_floating_point and any(isinstance(x, float) for x in operands):
        return torch.float32
    return found


def texts(operands: Sequence[Any], dtype: torch.dtype) -> list[str]:
    """The operands as values of the type of `dtype`."""
    found = []
    for each in operands:
        text = literal(each, dtype)
        if isinstance(each, CSEVariable) and computed(each.dtype) != dtype:
            text = converted(text, computed_letter(each.dtype), letter_of(dtype))
        found.append(text)
    return found


def _in_one_type(
    name: str,
    text_in: Callable[[str, list[str]], tuple[str, Functions]],
    in_double: bool = False,
) -> Callable[..., str]:
    """The op `name`. `text_in` takes the letter of a type, and operands of that type."""

    def expression(*operands: Any) -> str:
        wide = in_double and current.kernel().has_fp64
        dtype = torch.float64 if wide else dtype_of(operands)
        text, functions = text_in(letter_of(dtype), texts(operands, dtype))
        need(functions)
        return text

    expression.__name__ = name
    return expression


def _row_of(name: str) -> Any:
    row = row_named(_BY_ROW[name])
    assert row is not None, f"no row of {_BY_ROW[name]} has one expression"
    return row


def _by_row(name: str) -> Callable[..., str]:
    row = _row_of(name)
    return _in_one_type(name, functools.partial(row_expression, row), row.in_double)


# The ops that are calls of functions in machine code: the others are instructions.
_FLOPS_OF_CALL: Final = 10
FUNCTION_CALLS: Final = frozenset(
    name for name in _BY_ROW if _row_of(name).flops >= _FLOPS_OF_CALL
)


def _by_function(name: str, function: str) -> Callable[..., str]:
    return _in_one_type(name, functools.partial(call, function))


def _infix(name: str, sign: str) -> Callable[..., str]:
    def expression(a: Any, b: Any) -> str:
        one, other = texts((a, b), dtype_of((a, b)))
        return f"({one} {sign} {other})"

    expression.__name__ = name
    return expression


class OpenCLExpressions(OpOverrides):
    """The expression of each op. Their values get the type that Inductor deduces."""

    @staticmethod
    def to_dtype(
        x: Any,
        dtype: torch.dtype,
        src_dtype: torch.dtype | None = None,
        use_compute_types: bool = True,
    ) -> str:
        found = texts((x,), computed(dtype))[0]
        if use_compute_types or computed(dtype) == dtype:
            return found
        need_templates("compiled/bits")
        return f"rounded_{letter_of(dtype)}({found})"

    @staticmethod
    def to_dtype_bitcast(x: Any, dtype: torch.dtype, src_dtype: torch.dtype) -> str:
        bits = str(x)
        need_templates("compiled/bits")
        if src_dtype in (torch.float16, torch.bfloat16):
            bits = f"bits_{letter_of(src_dtype)}({x})"
        if dtype in (torch.float16, torch.bfloat16):
            return f"of_bits_{letter_of(dtype)}({bits})"
        wanted = value_type(dtype)
        return f"as_{wanted}({bits})"

    @staticmethod
    def constant(value: bool | float, dtype: torch.dtype) -> str:
        return literal(value, computed(dtype))

    @staticmethod
    def index_expr(expr: sympy.Expr, dtype: torch.dtype) -> Any:
        now = current.kernel()
        prepared = now.prepare_indexing(expr)
        wide = computed(dtype)
        # A quotient of sizes, for example. Of some expressions it is unknown.
        if not expr.is_integer and (wide.is_floating_point or expr.is_integer is False):
            real = wide if wide.is_floating_point else torch.float32
            printer = IndexPrinter(value_type(real))
            text = printer.doprint(now.rename_indexing(prepared))
            found = now.cse.generate(now.compute, f"({text})", dtype=real)
        else:
            found = now.cse.generate(
                now.compute,
                f"(long)({now.index_to_str(prepared)})",
                bounds=get_bounds_index_expr(expr),
                dtype=torch.int64,
            )
        return ops.to_dtype(found, dtype)

    value_expr = index_expr

    @staticmethod
    def masked(mask: Any, body: Callable[[], Any], other: Any) -> Any:
        return current.kernel().masked(mask, body, other)

    def indirect_indexing(
        self, var: Any, size: Any, check: bool = True, wrap_neg: bool = True
    ) -> sympy.Symbol:
        return current.kernel().index_variable(var)

    @staticmethod
    def where(a: Any, b: Any, c: Any) -> str:
        one, other = texts((b, c), dtype_of((b, c)))
        return f"({a} ? {one} : {other})"

    @staticmethod
    def logical_not(a: Any) -> str:
        return f"({a} == 0)"

    @staticmethod
    def logical_xor(a: Any, b: Any) -> str:
        return f"(({a} != 0) != ({b} != 0))"

    @staticmethod
    def bitwise_not(a: Any) -> str:
        return f"(!{a})" if dtype_of((a,)) == torch.bool else f"(~{a})"

    @staticmethod
    def neg(a: Any) -> str:
        return f"(-{literal(a, dtype_of((a,)))})"

    @staticmethod
    def isnan(a: Any) -> str:
        return f"isnan({a})" if dtype_of((a,)).is_floating_point else "0"

    @staticmethod
    def isinf(a: Any) -> str:
        return f"isinf({a})" if dtype_of((a,)).is_floating_point else "0"

    @staticmethod
    def signbit(a: Any) -> str:
        floating = dtype_of((a,)).is_floating_point
        return f"(signbit({a}) != 0)" if floating else f"({a} < 0)"

    @staticmethod
    def truediv(a: Any, b: Any) -> str:
        dtype = dtype_of((a, b))
        dtype = dtype if dtype.is_floating_point else torch.float32
        one, other = texts((a, b), dtype)
        return f"({one} / {other})"

    div_rn = truediv  # type: ignore[assignment]
    int_truediv = truediv

    @staticmethod
    def reciprocal(a: Any) -> str:
        return OpenCLExpressions.truediv(1.0, a)

    @staticmethod
    def mod(a: Any, b: Any) -> str:
        dtype = dtype_of((a, b))
        one, other = texts((a, b), dtype)
        if dtype.is_floating_point:
            return f"fmod({one}, {other})"
        text, functions = call("trunc_rest", letter_of(dtype), (one, other))
        need(functions)
        return text

    fmod = mod  # type: ignore[assignment]

    @staticmethod
    def pow(a: Any, b: Any) -> str:
        dtype = dtype_of((a, b))
        if dtype.is_floating_point:
            text, functions = call("power_of", letter_of(dtype), texts((a, b), dtype))
            need(functions)
            return text
        wide = torch.float64 if current.kernel().has_fp64 else torch.float32
        one, other = texts((a, b), wide)
        return f"(({value_type(dtype)})rint(pow({one}, {other})))"

    @staticmethod
    def fma(x: Any, y: Any, z: Any) -> str:
        return f"fma({', '.join(texts((x, y, z), dtype_of((x, y, z))))})"

    @staticmethod
    def ldexp(x: Any, n: Any) -> str:
        return f"ldexp({literal(x, dtype_of((x,)))}, (int)({n}))"

    @staticmethod
    def frexp(x: Any) -> Any:
        return current.kernel().fraction_and_exponent(x)

    @staticmethod
    def square(a: Any) -> str:
        return f"({a} * {a})"

    @staticmethod
    def rand(seed: Any, offset: Any) -> str:
        need_templates(*_RANDOM)
        return f"compiled_uniform({seed}, {offset})"

    @staticmethod
    def randn(seed: Any, offset: Any) -> str:
        need_templates(*_RANDOM)
        return f"compiled_normal({seed}, {offset})"

    @staticmethod
    def randint64(seed: Any, offset: Any, low: Any, high: Any) -> str:
        need_templates(*_RANDOM)
        low, high = texts((low, high), torch.int64)
        return f"compiled_integer({seed}, {offset}, {low}, {high})"


for _name in _BY_ROW:
    setattr(OpenCLExpressions, _name, staticmethod(_by_row(_name)))
for _name, _function in _BY_FUNCTION.items():
    setattr(OpenCLExpressions, _name, staticmethod(_by_function(_name, _function)))
for _name, _sign in _INFIX.items():
    setattr(OpenCLExpressions, _name, staticmethod(_infix(_name, _sign)))
