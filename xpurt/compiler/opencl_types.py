"""Types, literals and index expressions of generated OpenCL C.

Values of float16 and bfloat16 are computed in float, and bools are bytes of 0 or 1: as
in the kernels of rows.
"""

import math
from typing import Any, Final

import sympy
import torch
from sympy.printing.precedence import PRECEDENCE
from torch.utils._sympy.printers import ExprPrinter

from xpurt.kernels import TYPES as ELEMENT_TYPES

LETTERS: Final[dict[torch.dtype, str]] = {
    getattr(torch, each.dtype): letter
    for letter, each in ELEMENT_TYPES.items()
    if not each.dtype.startswith("complex")
}
# Types whose values are computed in a wider type.
_WIDENED: Final = {torch.float16: torch.float32, torch.bfloat16: torch.float32}


class NoOpenCLType(NotImplementedError):
    """A dtype that no kernel computes with."""


def letter_of(dtype: torch.dtype | None) -> str:
    """The letter of a dtype in memory."""
    if dtype not in LETTERS:
        raise NoOpenCLType(f"kernels do not compute with {dtype}")
    return LETTERS[dtype]


def computes(tensor: torch.Tensor) -> bool:
    """Whether kernels for the device of an xpu tensor read and write its dtype."""
    if tensor.dtype == torch.float64:
        return bool(torch.xpu.get_device_properties(tensor.device).has_fp64)
    return tensor.dtype in LETTERS


def computed(dtype: torch.dtype | None) -> torch.dtype:
    """The dtype in which its values are computed."""
    if dtype is None:
        raise NoOpenCLType("a value has no dtype")
    return _WIDENED.get(dtype, dtype)


def computed_letter(dtype: torch.dtype | None) -> str:
    return letter_of(computed(dtype))


def value_type(dtype: torch.dtype | None) -> str:
    """The OpenCL C type of a value in a register."""
    return ELEMENT_TYPES[letter_of(dtype)].compute


def literal(value: Any, dtype: torch.dtype) -> str:
    """A number as a literal; any other operand as its text."""
    if not isinstance(value, bool | int | float):
        return str(value)
    if dtype == torch.bool:
        return str(int(bool(value)))
    if not dtype.is_floating_point:
        return _integer(int(value), dtype)
    number = float(value)
    of_type = value_type(dtype)
    if math.isnan(number):
        return f"(({of_type})NAN)"
    if math.isinf(number):
        return f"({'-' if number < 0 else ''}({of_type})INFINITY)"
    if of_type == "float":
        # Beyond the largest float, the driver would warn of a literal.
        largest = torch.finfo(torch.float32).max
        if abs(number) > largest:
            return f"({'-' if number < 0 else ''}(float)INFINITY)"
        return f"({number!r}f)"
    return f"({number!r})"


def _integer(value: int, dtype: torch.dtype) -> str:
    if value == -(1 << 63):
        return "LONG_MIN"
    suffix = "L" if dtype == torch.int64 or not -(1 << 31) <= value < 1 << 31 else ""
    return f"({value}{suffix})" if value < 0 else f"{value}{suffix}"


class IndexPrinter(ExprPrinter):
    """Expressions of indices and sizes as OpenCL C. Every symbol is a long.

    real: the type of what is not an integer, "float" or "double".
    """

    def __init__(self, real: str = "float") -> None:
        super().__init__()
        self.real = real

    def _print_Integer(self, expr: sympy.Expr) -> str:
        return f"{int(expr)}L" if abs(int(expr)) >= 1 << 31 else str(int(expr))

    def _floor(self, expr: sympy.Expr, divisor: sympy.Expr) -> str:
        top, below = self._print(expr), self._print(divisor)
        if expr.is_nonnegative and divisor.is_positive:
            return f"(({top}) / ({below}))"
        return f"floor_quotient_l({top}, {below})"

    def _rest(self, expr: str, known: bool, divisor: sympy.Expr) -> str:
        below = self._print(divisor)
        if known and divisor.is_positive:
            return f"(({expr}) % ({below}))"
        return f"remainder_of_l({expr}, {below})"

    def _print_FloorDiv(self, expr: sympy.Expr) -> str:
        return self._floor(*expr.args)

    _print_CleanDiv = _print_FloorDiv

    def _print_ModularIndexing(self, expr: sympy.Expr) -> str:
        base, divisor, modulus = expr.args
        top = self._print(base) if divisor == 1 else self._floor(base, divisor)
        return self._rest(top, bool(base.is_nonnegative), modulus)

    def _print_Mod(self, expr: sympy.Expr) -> str:
        base, modulus = expr.args
        return self._rest(self._print(base), bool(base.is_nonnegative), modulus)

    _print_PythonMod = _print_Mod

    def _type(self, expr: sympy.Expr) -> str:
        return "long" if expr.is_integer else self.real

    def _real(self, expr: sympy.Expr) -> str:
        return f"(({self.real})({self._print(expr)}))"

    def _chained(self, expr: sympy.Expr, sign: str) -> str:
        type_ = self._type(expr)
        found, *others = (f"(({type_})({self._print(each)}))" for each in expr.args)
        for each in others:
            found = f"({found} {sign} {each} ? {found} : {each})"
        return str(found)

    def _print_Min(self, expr: sympy.Expr) -> str:
        return self._chained(expr, "<")

    def _print_Max(self, expr: sympy.Expr) -> str:
        return self._chained(expr, ">")

    def _print_Abs(self, expr: sympy.Expr) -> str:
        (of,) = expr.args
        function = "abs" if of.is_integer else "fabs"
        return f"{function}(({self._type(of)})({self._print(of)}))"

    def _print_Where(self, expr: sympy.Expr) -> str:
        condition, one, other = map(self._print, expr.args)
        return f"(({condition}) ? ({one}) : ({other}))"

    def _print_And(self, expr: sympy.Expr) -> str:
        return "(" + " && ".join(f"({self._print(a)})" for a in expr.args) + ")"

    def _print_Or(self, expr: sympy.Expr) -> str:
        return "(" + " || ".join(f"({self._print(a)})" for a in expr.args) + ")"

    def _print_Not(self, expr: sympy.Expr) -> str:
        return f"(!({self._print(expr.args[0])}))"

    def _print_Equality(self, expr: sympy.Expr) -> str:
        return f"({self._print(expr.lhs)} == {self._print(expr.rhs)})"

    def _print_Relational(self, expr: sympy.Expr) -> str:
        return f"({self._print(expr.lhs)} {expr.rel_op} {self._print(expr.rhs)})"

    def _print_BooleanTrue(self, expr: sympy.Expr) -> str:
        return "1"

    def _print_BooleanFalse(self, expr: sympy.Expr) -> str:
        return "0"

    def _print_ToFloat(self, expr: sympy.Expr) -> str:
        return self._real(expr.args[0])

    def _print_IntTrueDiv(self, expr: sympy.Expr) -> str:
        top, below = map(self._real, expr.args)
        return f"({top} / {below})"

    _print_FloatTrueDiv = _print_IntTrueDiv

    def _print_FloatPow(self, expr: sympy.Expr) -> str:
        base, power = map(self._real, expr.args)
        return f"pow({base}, {power})"

    def _print_TruncToFloat(self, expr: sympy.Expr) -> str:
        return f"trunc({self._real(expr.args[0])})"

    def _print_RoundDecimal(self, expr: sympy.Expr) -> str:
        number, digits = expr.args
        power = self._print(sympy.Float(10.0 ** abs(int(digits))))
        up, down = ("*", "/") if digits > 0 else ("/", "*")
        return f"(rint({self._real(number)} {up} {power}) {down} {power})"

    def _print_Function(self, expr: sympy.Expr) -> str:
        """A function of Python's math module, which OpenCL C has by the same name."""
        name = type(expr).__name__
        function = name.removeprefix("OpaqueUnaryFn_")
        if function == name:
            raise NotImplementedError(f"kernels do not compute {name} of sizes")
        return f"{function}({self._real(expr.args[0])})"

    def _print_Float(self, expr: sympy.Expr) -> str:
        return f"{float(expr)!r}{'f' if self.real == 'float' else ''}"

    def _print_NaN(self, expr: sympy.Expr) -> str:
        return f"(({self.real})NAN)"

    def _print_Infinity(self, expr: sympy.Expr) -> str:
        return "INFINITY"

    def _print_NegativeInfinity(self, expr: sympy.Expr) -> str:
        return "(-INFINITY)"

    def _to_int(self, function: str, expr: sympy.Expr) -> str:
        return f"((long){function}({self._real(expr.args[0])}))"

    def _print_FloorToInt(self, expr: sympy.Expr) -> str:
        return self._to_int("floor", expr)

    _print_floor = _print_FloorToInt

    def _print_CeilToInt(self, expr: sympy.Expr) -> str:
        return self._to_int("ceil", expr)

    _print_ceiling = _print_CeilToInt

    def _print_TruncToInt(self, expr: sympy.Expr) -> str:
        return self._to_int("trunc", expr)

    def _print_RoundToInt(self, expr: sympy.Expr) -> str:
        return self._to_int("rint", expr)

    def _print_PowByNatural(self, expr: sympy.Expr) -> str:
        base, power = expr.args
        if isinstance(power, sympy.Integer):
            return self.stringify([base] * int(power), "*", PRECEDENCE["Mul"]) or "1"
        return f"((long)pow({self._real(base)}, {self._real(power)}))"

    def _print_LShift(self, expr: sympy.Expr) -> str:
        return f"(({self._print(expr.args[0])}) << ({self._print(expr.args[1])}))"

    def _print_RShift(self, expr: sympy.Expr) -> str:
        return f"(({self._print(expr.args[0])}) >> ({self._print(expr.args[1])}))"


class SmallIndexPrinter(IndexPrinter):
    """The same for indices of a range below 2^31 elements, which are not negative.

    A quotient of 32 bits takes a fraction of the time of one of 64 bits, in vectors.
    The result is a long again, since only an index of 64 bits shows the driver that
    accesses are adjacent.
    """

    def _floor(self, expr: sympy.Expr, divisor: sympy.Expr) -> str:
        return f"((uint)({self._print(expr)}) / (uint)({self._print(divisor)}))"

    def _rest(self, expr: str, known: bool, divisor: sympy.Expr) -> str:
        return f"((uint)({expr}) % (uint)({self._print(divisor)}))"
