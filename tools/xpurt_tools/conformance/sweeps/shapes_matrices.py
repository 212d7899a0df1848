"""Calls of the sweep that factorize matrices and solve with them, and Fourier
transforms."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from xpurt_tools.conformance.sweeps.shapes_cases import COMPANIONS, Call, Case, Make
from xpurt_tools.conformance.sweeps.shapes_operands import UNEQUAL, Operands

MATRIX = {"n": (1, 5, 33), "batch": (1, 2, 5)}
SOLVED = {**MATRIX, "columns": (1, 3, 17)}
FLOPS = 1 << 22


def dominant(new: Operands, case: Case) -> Tensor:
    """Matrices whose diagonals outweigh the rest of their rows: a small error of an
    operand stays one of the result."""
    n = case["n"]
    found = new(case["batch"], n, n, values="unit")
    found.diagonal(dim1=-2, dim2=-1).add_(n)
    return found


def one(new: Operands, case: Case) -> tuple[Any, ...]:
    return (dominant(new, case),)


def exchanged(new: Operands, case: Case) -> tuple[Any, ...]:
    """With the rows in another order: each step of an elimination exchanges two."""
    found = dominant(new, case)
    return (found.copy_(found.roll(case["n"] // 2 + 1, dims=-2)),)


def positive(new: Operands, case: Case) -> tuple[Any, ...]:
    found = dominant(new, case)
    return (found.copy_(found + found.mT),)


def factor(new: Operands, case: Case) -> tuple[Any, ...]:
    """A Cholesky factor, and what is to be solved."""
    found = dominant(new, case).tril_()
    return found, new(case["batch"], case["n"], case["columns"])


def system(new: Operands, case: Case) -> tuple[Any, ...]:
    (found,) = exchanged(new, case)
    return found, new(case["batch"], case["n"], case["columns"])


def of_matrices(
    name: str,
    run: Callable[..., Any],
    *rows: str,
    make: Make = exchanged,
) -> Call:
    return Call(
        name,
        "factorizations",
        make,
        run,
        SOLVED if make in (factor, system) else MATRIX,
        rows,
        rtol=1e-4,
        most=FLOPS,
        work=lambda case: case["batch"] * case["n"] ** 3,
        layouts=UNEQUAL,
    )


LU = ("linalg_lu_factor_ex", "xpurt::lu_panel")
MATRICES = (
    of_matrices("lu_factor", lambda x: tuple(torch.linalg.lu_factor(x)), *LU),
    of_matrices("lu", lambda x: tuple(torch.linalg.lu(x)), "linalg_lu"),
    of_matrices("lu_unpack", lambda x: tuple(torch.lu_unpack(*torch.linalg.lu_factor(x))),
                "lu_unpack"),
    of_matrices("det", lambda x: torch.linalg.det(x / x.size(-1)), "_linalg_det"),
    of_matrices("slogdet", lambda x: tuple(torch.linalg.slogdet(x)), "_linalg_slogdet"),
    of_matrices("inv", torch.linalg.inv, "linalg_inv_ex"),
    of_matrices("solve", torch.linalg.solve, "_linalg_solve_ex", make=system),
    of_matrices("lu_solve", lambda x, y: torch.linalg.lu_solve(*torch.linalg.lu_factor(x), y),
                "linalg_lu_solve", make=system),
    of_matrices("cholesky", torch.linalg.cholesky, "linalg_cholesky_ex",
                "xpurt::cholesky_panel", make=positive),
    of_matrices("cholesky_inverse", torch.cholesky_inverse, "cholesky_inverse", make=one),
    of_matrices("cholesky_solve", lambda x, y: torch.cholesky_solve(y, x),
                "_cholesky_solve_helper", make=factor),
    of_matrices("solve_triangular", lambda x, y: torch.linalg.solve_triangular(x, y, upper=False),
                "linalg_solve_triangular", "xpurt::substitute", make=factor),
    of_matrices("triangular_solve, upper", lambda x, y: torch.triangular_solve(
                y, x.mT, upper=True)[0], "triangular_solve", make=factor),
    of_matrices("matrix_exp", lambda x: torch.linalg.matrix_exp(x / x.size(-1)),
                "linalg_matrix_exp", make=one),
)  # fmt: skip

LENGTH = {"n": (2, 5, 33), "batch": COMPANIONS}


def complex_line(new: Operands, case: Case) -> tuple[Any, ...]:
    layout = "contiguous" if new.layout == "expanded" else new.layout
    pairs = new(2, case["batch"], case["n"], layout=layout)
    return pairs[0], pairs[1]


def real_line(new: Operands, case: Case) -> tuple[Any, ...]:
    return (new(case["batch"], case["n"]),)


def transform(name: str, run: Callable[..., Any], *rows: str, make: Make) -> Call:
    return Call(name, "transforms", make, run, LENGTH, rows, rtol=1e-5)


def back(real: Tensor, imaginary: Tensor) -> Any:
    half = torch.complex(real, imaginary)
    return torch.fft.irfft(half, n=max(2 * half.size(-1) - 2, 1))


FOURIER = ("_fft_c2c", "xpurt::fourier_pass", "xpurt::roots_of_unity")
TRANSFORMS = (
    transform("fft", lambda x, y: torch.fft.fft(torch.complex(x, y)), *FOURIER, "complex",
              make=complex_line),
    transform("ifft of columns", lambda x, y: torch.fft.ifft(torch.complex(x, y).mT, dim=-2),
              "_fft_c2c", make=complex_line),
    transform("rfft", torch.fft.rfft, "_fft_r2c", make=real_line),
    transform("irfft", back, "_fft_c2r", make=complex_line),
    transform("polar", torch.polar, "polar", make=complex_line),
)  # fmt: skip
