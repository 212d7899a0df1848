"""Rows: one declaration per aten op, from which its kernels are made.

An expression is OpenCL C over the op's operands and its scalar parameters. Operands
are the arguments that are tensors in some overload, in the order of the schema: ``a0``,
``a1``, ...; a Scalar in place of a tensor (``add.Scalar``) is an operand, too.
Parameters (``alpha``, ``negative_slope``) have their names of the schema. Everything is
of type ``C``, the type of the computation, float literals included. Functions missing
from OpenCL C are in ``templates/prelude.cl``, ``floating.cl`` and ``integral.cl``, and
in the templates that a row names.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from xpurt.kernels.kinds.element_types import BOOL, COMPLEX, FLOATS, INTS

_NAME = re.compile(r"\b[a-z]\w*\b(?!\s*\()")
_OPERAND = re.compile(r"\ba(\d)\b")


def mask(numbers: Iterable[int]) -> int:
    """The integer in which the bits of these numbers are set."""
    return sum(1 << k for k in numbers)


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of ops: the type of the computation, and that of the result."""

    dtypes: str  # letters of the types of the computation that a row covers
    compute: str = "common"  # "common", "floating", "self", "source", "widened"
    result: str = "compute"  # "compute", "boolean", "self", "real"


ARITHMETIC = Kind(FLOATS + INTS + BOOL)
NUMERIC = Kind(FLOATS + INTS)
FLOATING = Kind(FLOATS, compute="floating")  # integers become floating numbers
FLOATING_ONLY = Kind(FLOATS)
INTEGRAL = Kind(INTS)
BITWISE = Kind(INTS + BOOL)
PREDICATE = Kind(FLOATS + INTS + BOOL, result="boolean")
FILLING = Kind(FLOATS + INTS + BOOL, compute="self", result="self")
COPYING = Kind(FLOATS + INTS + BOOL, compute="source", result="self")
MAGNITUDE = Kind(FLOATS + INTS + BOOL, result="real")
ANGLE = Kind(FLOATS, compute="floating", result="real")
MOVING = Kind(FLOATS + INTS + BOOL + COMPLEX)  # elements are moved, not computed with


class BaseRow:
    """The base of all kinds of rows. `template` is the name of the kind, under which
    the kind's file in csrc registers it."""

    __slots__ = ()

    template: ClassVar[str]

    def described(self) -> dict[str, object]:
        """What C++ reads of rows of this kind, beside what it reads of every row
        (`xpurt.kernels.rows.table.described`). C++ accepts exactly these keys."""
        return {}


@dataclass(frozen=True, slots=True)
class Row(BaseRow):
    """A pointwise op.

    `expression` is a string, or one per value of the op's str or bool argument (the key
    is "true" for True, "" for False). `integral` and `boolean` replace it if the
    computation is in integers or bools. With `complex` the row covers complex numbers,
    too, as vectors of two (see ``templates/complex.cl``). `functions` are the templates
    that the expressions need beside those of every kernel. `defaults` are the values of
    parameters and operands that a call leaves out. `flops` is the work per element: the
    instructions that a GPU needs for it, beyond those of a copy
    (``tests/compilers/work_of_rows.py`` counts them). With `in_double` narrower floats are computed in double, on devices that
    have double.

    `ulp` is the largest distance between a result and the exact one rounded to its
    type, counted in numbers of the type (1: a neighbour). The tests measure it against
    float64 for narrower types, and against more digits for float64. Near zero, below
    `scale`, the spacing of numbers at `scale` counts: there a sum cancels. A half is
    within 1 in any case. `complex_ulp` is the same for complex numbers: their error and
    the spacing are those of the norm.
    """

    template: ClassVar[str] = "pointwise"

    aten: str
    expression: str | Mapping[str, str]
    kind: Kind
    flops: float = 1
    integral: str | None = None
    boolean: str | None = None
    complex: str | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)
    conditions: tuple[int, ...] = ()  # operands that are bool, not promoted
    zero_dim: tuple[int, ...] = ()  # operands that have one element, if tensors
    leading: int = 0  # operand whose strides the result takes, if they differ
    ignored: tuple[str, ...] = ()  # arguments without influence
    overloads: tuple[str, ...] = ()  # overloads of the row; all, if there are none
    functions: tuple[str, ...] = ()
    in_double: bool = False
    ulp: float = 1
    scale: float = 0
    complex_ulp: float = 4
    same_type: bool = False  # PyTorch refuses tensors of different types
    raises_on_zero: bool = False  # PyTorch's CPU kernel refuses an integral divisor 0
    raises_on_negative: bool = False  # the same of parameters
    converts_scalars: bool = False  # PyTorch refuses a number beyond the tensors' type

    @property
    def dtypes(self) -> str:
        return self.kind.dtypes + (COMPLEX if self.complex is not None else "")

    @property
    def expressions(self) -> dict[str, str]:
        if isinstance(self.expression, str):
            return {"": self.expression}
        return dict(self.expression)

    @property
    def params(self) -> list[str]:
        """Names in the expressions that are neither operands nor functions."""
        names: dict[str, None] = {}
        for text in self.expressions.values():
            for name in _NAME.findall(text):
                if not _OPERAND.fullmatch(name):
                    names[name] = None
        return list(names)

    def with_prefixes(self, expression: str) -> str:
        """The expression with `arg_` before its parameters. OpenCL C has functions of
        the same names: `nan`."""
        for name in self.params:
            expression = re.sub(rf"\b{name}\b(?!\s*\()", f"arg_{name}", expression)
        return expression

    @property
    def uses(self) -> set[int]:
        """Numbers of the operands that are read."""
        others = (self.integral, self.boolean, self.complex)
        texts = [*self.expressions.values(), *filter(None, others)]
        return {int(k) for text in texts for k in _OPERAND.findall(text)}

    def described(self) -> dict[str, object]:
        return {
            "compute": self.kind.compute,
            "result": self.kind.result,
            "conditions": mask(self.conditions),
            "uses": mask(self.uses),
            "zero_dim": mask(self.zero_dim),
            "leading": self.leading,
            "same_type": self.same_type,
            "raises_on_zero": self.raises_on_zero,
            "raises_on_negative": self.raises_on_negative,
            "converts_scalars": self.converts_scalars,
            "params": self.params,
            "variants": [] if isinstance(self.expression, str) else [*self.expression],
            "ignored": list(self.ignored),
        }


@dataclass(frozen=True, slots=True)
class Reduction(BaseRow):
    """A reduction along any dimensions: ``transform`` is applied to each ``a0``, and
    the associative ``combine`` to two values ``a`` and ``b``; ``finish`` computes the
    result from ``acc`` and the number ``n`` of elements. With `in_double` floats are
    combined in double, on devices that have it."""

    template: ClassVar[str] = "reduction"

    aten: str
    kind: Kind
    identity: str
    combine: str
    transform: str = "a0"
    finish: str = "acc"
    flops: float = 1
    raises_on_empty: bool = False
    in_double: bool = False

    def described(self) -> dict[str, object]:
        return {
            "compute": self.kind.compute,
            "result": self.kind.result,
            "raises_on_empty": self.raises_on_empty,
        }


@dataclass(frozen=True, slots=True)
class Softmax(BaseRow):
    """A normalization of lines. Forward: ``expression`` over the element ``a0``, the
    largest element ``most`` and ``sum``, the sum of exp(a0 - most). Backward, if
    ``summand`` is given: over the gradient ``a0``, the forward result ``a1`` and
    ``sum``, the sum of the summands."""

    template: ClassVar[str] = "softmax"

    aten: str
    expression: str
    kind: Kind = FLOATING_ONLY
    summand: str = ""
    flops: float = 10


@dataclass(frozen=True, slots=True)
class Matmul(BaseRow):
    """A matrix product, by oneDNN or our own kernel; C++ handles the arguments."""

    template: ClassVar[str] = "matmul"

    aten: str
    kind: Kind = FLOATING_ONLY
    flops: float = 2
