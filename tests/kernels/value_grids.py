"""Values that test a kernel at the edges of its type and its domain."""

import math

import torch

HALVES = (torch.float16, torch.bfloat16)
DIGITS = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24, torch.float64: 53}

# Values at which functions change their formula, have zeros or poles, or are undefined.
NOTED = (
    *(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0, 20.0, 25.0, 30.0, 45.0),
    *(0.5, 1.5, 2.5, 3.5, 0.25, 0.75, 0.1, 0.3, 0.9, 1e-3, 1e-5, 1e-10, 1e-30),
    *(86.5, 87.5, 88.5, 89.0, 100.0, 104.0, 127.0, 128.0, 149.0, 700.0, 709.7, 710.0),
    *(745.0, 1e3, 1e4, 1e5, 1e6 + 0.5, 2.0**22 + 0.5, 2.0**23 + 1, 2.0**24 + 2, 1e9),
    *(1e10, 1e15, 1e16, 1e22, 1e30, 1e38, 1e100, 1e200, 1e300),
    *(k * math.pi / 2 for k in (1, 2, 3, 5, 7, 11, 101, 100001)),
    *(math.e, math.log(2), 2.404825557695773, 3.8317059702075125, 0.8935769662791675),
    *(2.197141326031017, 1.4616321449683622),
)
# For each operand of a pair.
PAIRED = (
    *(1e-3, 0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 7.0, 10.0, 30.0, 100.0, 100.5),
    *(1e3, 1e4, 1e10, 1e20),
)
WHOLE = (
    *(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 31, 32, 63, 64, 100, 127, 1000),
    *(46340, 46341, 10**6, 10**9, 3037000500),
)


def every_half(dtype: torch.dtype) -> torch.Tensor:
    """All 65,536 values of a type of 16 bits."""
    return torch.arange(-(1 << 15), 1 << 15).to(torch.int16).view(dtype)


def least(dtype: torch.dtype) -> float:
    """The smallest number above zero."""
    return math.ldexp(torch.finfo(dtype).tiny, 1 - DIGITS[dtype])


def padded(values: torch.Tensor) -> torch.Tensor:
    """PyTorch's kernels have another form for what is left over by their vectors, which
    does not always give the same."""
    return torch.cat([values, values[: -len(values) % 64]])


def _edges(dtype: torch.dtype) -> list[float]:
    info = torch.finfo(dtype)
    return [
        *(0.0, math.inf, least(dtype), info.tiny / 2, info.tiny, info.eps),
        *(1 - info.eps / 2, 1 + info.eps, info.max / 2, info.max),
    ]


def _both_signs(values: list[float], dtype: torch.dtype) -> torch.Tensor:
    whole = torch.tensor([math.nan, *values, *(-x for x in values)], dtype=torch.double)
    return whole.to(dtype)


def special_floats(dtype: torch.dtype) -> torch.Tensor:
    """Edges, noted values and some between, and some of every size."""
    info = torch.finfo(dtype)
    more = [3 * least(dtype), math.sqrt(info.max), math.sqrt(info.tiny)]
    generator = torch.Generator().manual_seed(0)
    draw = lambda n: 2 * torch.rand(n, generator=generator, dtype=torch.double) - 1  # noqa: E731
    digits = math.log10(info.max)
    sizes = 10 ** (draw(100) * digits)
    drawn = torch.cat([draw(60), 10 * draw(100), sizes, -sizes]).to(dtype)
    return torch.cat([_both_signs([*_edges(dtype), *more, *NOTED], dtype), drawn])


def paired_floats(dtype: torch.dtype) -> torch.Tensor:
    values = [x for x in PAIRED if x < torch.finfo(dtype).max]
    return _both_signs([*_edges(dtype), *values], dtype)


def special_integers(dtype: torch.dtype) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.tensor([False, True])
    info = torch.iinfo(dtype)
    ends = (
        info.min,
        info.min + 1,
        info.min // 2,
        info.max // 2,
        info.max - 1,
        info.max,
    )
    found = {*ends, *WHOLE, *(-x for x in WHOLE)}
    kept = sorted(x for x in found if info.min <= x <= info.max)
    return torch.tensor(kept, dtype=dtype)


def special_values(dtype: torch.dtype) -> torch.Tensor:
    """The values of one operand."""
    if dtype in HALVES:
        return every_half(dtype)
    return special_floats(dtype) if dtype.is_floating_point else special_integers(dtype)


def combined(values: torch.Tensor, operands: int) -> list[torch.Tensor]:
    """Each value of one operand with each of the others."""
    each = torch.meshgrid(*[values] * operands, indexing="ij")
    return [x.flatten().contiguous() for x in each]
