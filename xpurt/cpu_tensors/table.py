"""The ops of CPU tensors that xpurt's rows compute."""

from dataclasses import dataclass
from functools import cache
from typing import Final

from xpurt import _C, kernels

Entry = tuple[str, str, bool]  # of _C.set_cpu_kernels


@dataclass(frozen=True, slots=True)
class CpuOp:
    """An op that "auto" computes by its row where that is measured to be faster.

    op: its name; all overloads that have a row are meant.
    reason: why the row can be faster.
    ratio: processor time of the row over that of PyTorch's kernel, in the best example
        of docs/measured/cpu_kernels.md, which also names the machine.
    by_scalars: whether numbers of floating point change what it costs, as an exponent.
    """

    op: str
    reason: str
    ratio: float
    by_scalars: bool = False


# Why the rows of groups of ops can be faster.
_MOMENTS: Final = (
    "PyTorch updates mean and variance by each element; the row sums twice, by vectors"
)
_SCAN: Final = "PyTorch follows one line after another; the row, many lines at once"
_FUNCTION: Final = "the vector functions of the OpenCL compiler take less time"
_SCALAR: Final = "PyTorch computes one element after another; the row, by vectors"
_PRODUCT: Final = "oneDNN is faster than MKL, which is held back on AMD's processors"

BY_COST: Final[tuple[CpuOp, ...]] = (
    CpuOp("var", _MOMENTS, 0.10),
    CpuOp("std", _MOMENTS, 0.10),
    CpuOp("var_mean", _MOMENTS, 0.10),
    CpuOp("std_mean", _MOMENTS, 0.09),
    CpuOp("cumsum", _SCAN, 0.46),
    CpuOp("cumprod", _SCAN, 0.27),
    CpuOp("_logcumsumexp", _SCAN, 0.18),
    CpuOp("argmax", _SCALAR, 0.43),
    CpuOp("pow", _FUNCTION, 0.41, by_scalars=True),
    CpuOp("exp", _FUNCTION, 0.45),
    CpuOp("exp2", _FUNCTION, 0.74),
    CpuOp("expm1", _FUNCTION, 0.37),
    CpuOp("log", _FUNCTION, 0.41),
    CpuOp("log10", _FUNCTION, 0.44),
    CpuOp("log1p", _FUNCTION, 0.59),
    CpuOp("log2", _FUNCTION, 0.45),
    CpuOp("logaddexp", _FUNCTION, 0.72),
    CpuOp("sin", _FUNCTION, 0.52),
    CpuOp("cos", _FUNCTION, 0.54),
    CpuOp("tan", _FUNCTION, 0.24),
    CpuOp("asin", _FUNCTION, 0.26),
    CpuOp("acos", _FUNCTION, 0.28),
    CpuOp("atan", _FUNCTION, 0.18),
    CpuOp("atan2", _FUNCTION, 0.55),
    CpuOp("sinh", _FUNCTION, 0.36),
    CpuOp("cosh", _FUNCTION, 0.34),
    CpuOp("tanh", _FUNCTION, 0.21),
    CpuOp("asinh", _SCALAR, 0.04),
    CpuOp("acosh", _SCALAR, 0.24),
    CpuOp("atanh", _FUNCTION, 0.49),
    CpuOp("sinc", _SCALAR, 0.05),
    CpuOp("hypot", _FUNCTION, 0.31),
    CpuOp("erf", _FUNCTION, 0.37),
    CpuOp("erfc", _FUNCTION, 0.32),
    CpuOp("erfinv", _SCALAR, 0.08),
    CpuOp("lgamma", _FUNCTION, 0.69),
    CpuOp("digamma", _SCALAR, 0.21),
    CpuOp("sigmoid", _FUNCTION, 0.70),
    CpuOp("silu", _FUNCTION, 0.89),
    CpuOp("mish", _FUNCTION, 0.13),
    CpuOp("softplus", _FUNCTION, 0.69),
    CpuOp("elu", _FUNCTION, 0.46),
    CpuOp("fmod", _FUNCTION, 0.34),
    CpuOp("remainder", _FUNCTION, 0.36),
    CpuOp("mm", _PRODUCT, 0.80),
    CpuOp("addmm", _PRODUCT, 0.87),
    CpuOp("bmm", _PRODUCT, 0.80),
    CpuOp("baddbmm", _PRODUCT, 0.89),
)


def every_op() -> list[Entry]:
    """The overloads of all ops that have a row."""
    return [(op, overload, False) for _, op, overload in _bound()]


def ops_by_cost() -> list[Entry]:
    """The overloads of the ops of BY_COST."""
    by_scalars = {row.op: row.by_scalars for row in BY_COST}
    return [
        (op, overload, by_scalars[name])
        for name, op, overload in _bound()
        if name in by_scalars
    ]


@cache
def _bound() -> list[tuple[str, str, str]]:
    """The op of the row, and name and overload of the op that it computes: "add",
    "aten::add_", "Tensor"."""
    return [
        (kernels.ROWS[index].aten, op, overload)
        for index, op, overload in _C.bound_overloads()
    ]
