"""Complex numbers at the edges of their type, and what rows make of them.

A result is right if the norm of its error is within the row's bound (`complex_ulp`, see
Row), counted in numbers of the type at the norm of the exact one, or if it has the same
bits as that of PyTorch's CPU kernel. Where the norm is not finite each part counts for
itself. NaN, infinities and the signs of zeros are, in each part, those of the CPU's
result or of the exact one, which NumPy computes in the next wider type by Annex G of C99.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from kernels.kernel_forced import on_queue
from kernels.kernel_samples import functional
from kernels.value_grids import least, padded
from kernels.value_sweep import COMPUTING, filled
from xpurt.kernels.kinds.row import Row

REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}
WIDER = {torch.complex64: np.complex128, torch.complex128: np.clongdouble}
# An Annex G of its own needs a type that is wider than double.
HAS_WIDER = np.finfo(np.longdouble).nmant > 52
MOST = 8192  # pairs or triples, of those that there are

ROWS = [row for row in COMPUTING if row.complex is not None]


@dataclass(frozen=True)
class ComplexSweep:
    row: Row
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"{self.row.aten}-{str(self.dtype).removeprefix('torch.')}"


def sweeps() -> Iterator[ComplexSweep]:
    for row in ROWS:
        for dtype in REAL:
            yield ComplexSweep(row, dtype)


def parts(dtype: torch.dtype, operands: int) -> torch.Tensor:
    """Values of parts. For one operand, each pair of these is tested as a number."""
    real = REAL[dtype]
    info = torch.finfo(real)
    edges = [0.0, math.inf, least(real), info.tiny, info.max / 2, info.max]
    some = [0.3, 1.0, 1.5, 2.0, 1e3, 1e10]
    if operands == 1:
        root = math.sqrt(info.max)
        edges += [
            info.tiny / 2,
            info.eps,
            1 - info.eps / 2,
            1 + info.eps,
            root,
            1 / root,
        ]
        some += [1e-20, 1e-5, 1e-3, 0.1, 0.5, 0.6, 0.8, math.pi / 2, 3.0, math.pi, 10.0]
        some += [20.0, 45.0, 87.0, 89.5, 104.0, 709.7, 710.2, 745.0, 1e5, 1e30]
    if operands == 3:
        edges, some = edges[:2] + edges[-1:], some[1:5:2]
    values = [math.nan, *edges, *some, *(-x for x in (*edges, *some))]
    return torch.tensor(values, dtype=torch.double).to(real)


def grid(dtype: torch.dtype, operands: int) -> list[torch.Tensor]:
    each = parts(dtype, operands)
    real, imaginary = torch.meshgrid(each, each, indexing="ij")
    numbers = torch.complex(real.flatten(), imaginary.flatten())
    if operands == 1:
        return [padded(numbers)]
    generator = torch.Generator().manual_seed(0)
    draw = [
        torch.randint(len(numbers), (MOST,), generator=generator)
        for _ in range(operands)
    ]
    return [numbers[places] for places in draw]


def sigmoid(z: np.ndarray) -> np.ndarray:
    """exp(z / 2) / (2 cosh(z / 2)): nothing cancels near a pole. Beyond these real parts
    it is 0 or 1 in the narrower type."""
    most = 300 if z.dtype == np.complex128 else 10000
    edge = np.isinf(z.real) & ~np.isfinite(z.imag)
    x = np.clip(np.where(np.isnan(z.real), 0, z.real), -most, most)
    given = np.empty_like(z)
    given.real, given.imag = np.where(np.isnan(z.real), z.real, x) / 2, z.imag / 2
    found = np.exp(given) / (2 * np.cosh(given))
    return np.where(edge, (z.real > 0).astype(z.dtype), found)


Reference = Callable[..., np.ndarray]
REFERENCES: dict[str, Reference] = {
    **{name: getattr(np, name) for name in "exp log sqrt sin cos tan".split()},
    **{name: getattr(np, name) for name in "sinh cosh tanh abs angle".split()},
    "log2": lambda z: np.log(z) / np.log(z.real.dtype.type(2)),
    "log10": lambda z: np.log(z) / np.log(z.real.dtype.type(10)),
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "reciprocal": lambda z: 1 / z,
    "sigmoid": sigmoid,
    "neg": np.negative,
    "conj_physical": np.conj,
    "sgn": lambda z: np.where(z == 0, 0, z / np.abs(z)),
    "add": np.add,
    "sub": np.subtract,
    "rsub": lambda a, b: b - a,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "addcmul": lambda a, b, c: a + b * c,
    "addcdiv": lambda a, b, c: a + b / c,
}


def condition(row: Row, wide: list[np.ndarray]) -> np.ndarray:
    """The growth of an error in the operands' last digit: pow is exp(b log(a))."""
    if row.aten != "pow":
        return np.ones(len(wide[0]))
    turns = np.abs(wide[1]) * np.abs(np.log(wide[0]))
    return np.where(np.isfinite(turns), np.maximum(turns, 1), 1).astype(float)


@dataclass(frozen=True)
class Judged:
    operands: list[torch.Tensor]
    actual: torch.Tensor
    expected: torch.Tensor
    exact: np.ndarray | None
    apart: np.ndarray
    wrong: np.ndarray

    def __str__(self) -> str:
        places = np.flatnonzero(self.wrong)
        lines = [f"{len(places)} of {len(self.wrong)} values are wrong"]
        for k in places[np.argsort(-self.apart[places])][:4]:
            given = ", ".join(repr(x[k].item()) for x in self.operands)
            exact = "" if self.exact is None else f", exactly {self.exact[k]!r}"
            lines.append(
                f"of ({given}) it is {self.actual[k].item()!r}, on the CPU "
                f"{self.expected[k].item()!r}{exact}: {self.apart[k]:.4g} apart"
            )
        return "\n".join(lines)


def found_by(sweep: ComplexSweep, device: torch.device) -> Judged:
    row = sweep.row
    overload = functional(row)
    function = filled(row, overload, "")
    operands = grid(sweep.dtype, overload.tensors)
    if row.conditions:
        operands = [
            x != 0 if k in row.conditions else x for k, x in enumerate(operands)
        ]
    expected = function(*(x.clone() for x in operands))
    moved = [x.to(device) for x in operands]
    actual = on_queue(overload.name, lambda: function(*moved)).cpu()
    assert actual.dtype == expected.dtype
    if row.aten not in REFERENCES:  # values are compared or chosen
        differs = ~_same_bits(_pairs(actual), _pairs(expected))
        return Judged(operands, actual, expected, None, differs * 1.0, differs)
    with np.errstate(all="ignore"):
        wide = [x.numpy().astype(WIDER[sweep.dtype]) for x in operands]
        exact = REFERENCES[row.aten](*wide)
        apart, wrong = _judged(row, actual, expected, exact, condition(row, wide))
    return Judged(operands, actual, expected, exact, apart, wrong)


def _pairs(values: torch.Tensor | np.ndarray) -> np.ndarray:
    """Two parts of each; of real numbers the second is 0."""
    found = values.numpy() if isinstance(values, torch.Tensor) else values
    real = not np.iscomplexobj(found)
    return np.stack([found.real, np.zeros_like(found) if real else found.imag], 1)


def _same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    same = (a == b) & (np.signbit(a.astype(float)) == np.signbit(b.astype(float)))
    return np.asarray((same | ((a != a) & (b != b))).all(1))


def _kind_differs(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where one part is NaN and the other is not; where one is infinite and the other
    is not, or zeros have two signs."""
    nan = np.isnan(a) != np.isnan(b)
    infinite = (np.isinf(a) | np.isinf(b)) & (a != b) & ~np.isnan(a) & ~np.isnan(b)
    zeros = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    return nan, infinite | zeros


def _judged(
    row: Row,
    actual: torch.Tensor,
    expected: torch.Tensor,
    exact: np.ndarray,
    condition: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    mine, native, right = _pairs(actual), _pairs(expected), _pairs(exact)
    info = np.finfo(mine.dtype)
    rounded = right.astype(mine.dtype)
    finite = np.isfinite(right).all(1)
    norm = np.hypot(right[:, 0], right[:, 1])
    size = np.where(finite[:, None], norm[:, None], np.abs(right))
    size = np.where(np.isfinite(size), size, 0).clip(info.tiny)
    most = info.max / 2
    step = np.spacing(np.minimum(size, most).astype(mine.dtype)).astype(right.dtype)
    step *= np.maximum(size / most, 1)
    error = np.abs(mine - right) / step
    error = np.where(np.isfinite(mine) & np.isfinite(rounded), error, 0)
    both = np.hypot(error[:, 0], error[:, 1])
    apart = np.where(finite, both, error.max(1)) / condition
    (nan, other), (nan_there, other_there) = (
        _kind_differs(mine, rounded),
        _kind_differs(mine, native),
    )
    differs = (nan | other) & (nan_there | other_there)
    # Of a power the direction, and with it the signs, is noise where its angle is.
    noise = ~nan & ~nan_there
    bad = (differs & noise).any(1) & (condition < 60)
    bad |= (differs & ~noise).any(1) & (condition < 1e3)
    wrong = (apart > row.complex_ulp) & (condition < 1e4) | bad
    return apart.astype(float), np.asarray(wrong & ~_same_bits(mine, native))
