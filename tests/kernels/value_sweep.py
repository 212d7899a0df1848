"""Runs a row on a sweep of values, and reports the wrong results.

A result is right if it is within the row's bound (`ulp` and `scale`, see Row) of the
exact one rounded to its type, or has the same bits as that of PyTorch's CPU kernel. NaN,
infinities and the signs of zeros have to equal those of one of the two.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from zlib import crc32

import torch

from kernels.kernel_forced import on_queue
from kernels.kernel_samples import DTYPE_OF_LETTER, SCALARS, Overload, call, functional
from kernels.value_distance import distance, kind_differs, same_bits
from kernels.value_exceptions import left_out
from kernels.value_grids import (
    HALVES,
    combined,
    padded,
    paired_floats,
    special_integers,
    special_values,
)
from kernels.value_references import EXACT, EXACT_IN_FLOAT, REFERENCES, by_mpmath
from xpurt.kernels import ROWS
from xpurt.kernels.kinds.element_types import INTS
from xpurt.kernels.kinds.row import Row

# Values are moved, not computed; their tests are others.
MOVES = {"fill_", "zero_", "copy_", "masked_fill"}
COMPUTING = [row for row in ROWS if isinstance(row, Row) and row.aten not in MOVES]


@dataclass(frozen=True)
class Sweep:
    """A row by one of its expressions, on values of one dtype."""

    row: Row
    variant: str
    dtype: torch.dtype
    exactly: bool = False  # with mpmath for the exact values, which takes longer

    @property
    def name(self) -> str:
        return f"{self.row.aten}:{self.variant}" if self.variant else self.row.aten

    def __str__(self) -> str:
        number = sum(
            each.aten == self.row.aten for each in ROWS[: ROWS.index(self.row)]
        )
        again = f"-{number + 1}" if number else ""
        return f"{self.name}{again}-{str(self.dtype).removeprefix('torch.')}"


def filled(row: Row, overload: Overload, variant: str) -> Callable[..., torch.Tensor]:
    """The overload as a function of its operands. Parameters have their defaults, but
    0 for a negative one beside unsigned operands."""

    def function(*operands: torch.Tensor) -> torch.Tensor:
        left = list(operands)
        values: list[object] = []
        for position, argument in enumerate(overload.arguments):
            kind = str(argument.type)
            if argument.is_out:
                continue
            if "Tensor" in kind:
                values.append(left.pop(0))
            elif "str" in kind:
                values.append(variant)
            elif "bool" in kind:
                values.append(variant == "true")
            elif argument.has_default_value():
                default = argument.default_value
                negative = isinstance(default, int) and default < 0
                unsigned = operands[0].dtype == torch.uint8
                values.append(0 if negative and unsigned else default)
            elif operands[0].dtype.is_floating_point:
                values.append(SCALARS.get(argument.name, 0.5 if position else 1.25))
            else:
                values.append(2)
        return call(overload, values)

    return function


def grid(sweep: Sweep, operands: int) -> list[torch.Tensor]:
    if operands == 1:
        found = [special_values(sweep.dtype)]
    else:
        whole = not sweep.dtype.is_floating_point
        values = (special_integers if whole else paired_floats)(sweep.dtype)
        if operands > 2:
            values = values[:: 3 if len(values) > 3 else 1]
        found = combined(values, operands)
    kept = ~left_out(sweep.row.aten, found)
    found = [padded(x[kept]) for x in found]
    return [x != 0 if k in sweep.row.conditions else x for k, x in enumerate(found)]


def on_cpu(
    function: Callable[..., torch.Tensor], operands: list[torch.Tensor]
) -> torch.Tensor | None:
    """PyTorch's own result; computed in float if PyTorch lacks the half type."""
    try:
        return function(*(x.clone() for x in operands))
    except (RuntimeError, NotImplementedError):
        if operands[0].dtype not in HALVES:
            return None
    try:
        return function(*(x.float() for x in operands)).to(operands[0].dtype)
    except (RuntimeError, NotImplementedError):
        return None


def exact_values(
    sweep: Sweep, function: Callable[..., torch.Tensor], operands: list[torch.Tensor]
) -> torch.Tensor:
    wide = [
        x if x.dtype == torch.bool and k in sweep.row.conditions else x.double()
        for k, x in enumerate(operands)
    ]
    found = REFERENCES.get(sweep.name, function)(*wide)
    if sweep.exactly and sweep.name in EXACT:
        return by_mpmath(sweep.name, operands[0], found)
    return found


@dataclass(frozen=True)
class Found:
    """Results, and how far they are from the exact ones."""

    operands: list[torch.Tensor]
    actual: torch.Tensor
    expected: torch.Tensor | None  # PyTorch's CPU kernel's
    exact: torch.Tensor | None  # None: they are not floats
    apart: torch.Tensor
    wrong: torch.Tensor

    def __str__(self) -> str:
        order = self.apart.nan_to_num(torch.inf, torch.inf).argsort(descending=True)
        places = order[self.wrong[order]][:4].tolist()
        lines = [f"{int(self.wrong.sum())} of {len(self.wrong)} values are wrong"]
        for k in places:
            given = ", ".join(repr(x[k].item()) for x in self.operands)
            native = None if self.expected is None else self.expected[k].item()
            right = None if self.exact is None else self.exact[k].item()
            lines.append(
                f"of ({given}) it is {self.actual[k].item()!r}, on the CPU {native!r}, "
                f"exactly {right!r}: {self.apart[k].item():.4g} apart"
            )
        return "\n".join(lines)


def bound_of(row: Row, dtype: torch.dtype) -> float:
    """Numbers of the dtype between a result and the exact one, at most."""
    return 1 if dtype in HALVES else row.ulp


def scale_of(
    row: Row, operands: list[torch.Tensor], exact: torch.Tensor
) -> torch.Tensor:
    """Below which numbers count as far apart as at it."""
    size = torch.full_like(exact, row.scale)
    if row.aten.endswith("_backward"):
        # A part of the slope that is subnormal has lost digits.
        tiny = torch.finfo(operands[1].dtype).tiny
        gradient = operands[0].double().abs().nan_to_num(0, 0)
        return torch.maximum(size, gradient * 128 * tiny)
    if row.aten.startswith("special_bessel"):
        # They swing within this.
        return size * operands[0].double().abs().clamp(min=1).rsqrt().nan_to_num(0)
    return size


def found_by(sweep: Sweep, device: torch.device) -> Found | None:
    """None where neither the row nor PyTorch's kernel takes the dtype."""
    row = sweep.row
    overload = functional(row)
    function = filled(row, overload, sweep.variant)
    operands = grid(sweep, overload.tensors)
    expected = on_cpu(function, operands)
    if expected is None:
        return None
    moved = [x.to(device) for x in operands]
    actual = on_queue(overload.name, lambda: function(*moved)).cpu()
    assert actual.dtype == expected.dtype
    if not actual.dtype.is_floating_point:
        differs = actual != expected
        return Found(operands, actual, expected, None, differs.double(), differs)
    floats = operands
    if not sweep.dtype.is_floating_point:
        floats = [x.to(actual.dtype) for x in operands]
    exact = exact_values(sweep, function, floats)
    return judged(row, operands, actual, expected, exact)


def judged(
    row: Row,
    operands: list[torch.Tensor],
    actual: torch.Tensor,
    expected: torch.Tensor,
    exact: torch.Tensor,
) -> Found:
    apart = distance(actual, exact, scale_of(row, operands, exact))
    rounded = exact.to(actual.dtype)
    bad = kind_differs(actual, rounded) & kind_differs(actual, expected)
    wrong = (apart > bound_of(row, actual.dtype)) | bad
    as_native = same_bits(actual, expected)
    return Found(operands, actual, expected, exact, apart, wrong & ~as_native)


def sweeps() -> Iterator[Sweep]:
    """All of them."""
    for row in COMPUTING:
        whole = INTS + "t" if row.kind.compute == "floating" else ""
        letters = row.kind.dtypes + whole
        if row.raises_on_zero:  # of integers the native kernel divides
            letters = row.kind.dtypes.strip(INTS)
        for letter in sorted(set(letters)):
            dtype = DTYPE_OF_LETTER[letter]
            exactly = dtype == torch.float64
            for variant in row.expressions:
                name = f"{row.aten}:{variant}" if variant else row.aten
                by_float = dtype == torch.float32 and name in EXACT_IN_FLOAT
                yield Sweep(row, variant, dtype, exactly or by_float)


def is_quick(sweep: Sweep) -> bool:
    """Halves of all unary rows; of the rest, a selection by a hash of the name."""
    one = functional(sweep.row).tensors == 1
    if sweep.dtype in HALVES and one:
        return True
    return crc32(str(sweep).encode()) % 6 == 0
