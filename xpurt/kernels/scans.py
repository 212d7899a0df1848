"""Rows of cumulative ops: a place is a line along one dimension."""

from xpurt.kernels.element_types import COMPLEX
from xpurt.kernels.row import ARITHMETIC, FLOATING_ONLY, Kind
from xpurt.kernels.steps import Step, Steps

NUMBERS = Kind(ARITHMETIC.dtypes + COMPLEX)


def scan(begin: str, combine: str) -> tuple[Step, ...]:
    """Runs along `dim` of self with `acc`, the combination so far with `x`."""
    return (
        Step(
            over="out",
            along=("dim",),
            text=f"""
  long index[8];
  const long from = self_line(i, dim, index), to = out_line(i, dim, index);
  const int d = wrapped(dim, self_RANK);
  out_T acc = out_OF({begin});
  const long n = self_size(d);
  for (long k = 0; k < n; ++k) {{
    const out_T x = out_OF(self_load(from + k * self_stride(d)));
    acc = {combine};
    out_store(to + k * out_stride(d), acc);
  }}
""",
        ),
    )


def extreme(better: str) -> tuple[Step, ...]:
    """Runs along `dim` of self with the extreme so far and its latest place."""
    return (
        Step(
            over="self",
            along=("dim",),
            text=f"""
  long index[8];
  const long from = self_line(i, dim, index);
  const long to = values_line(i, dim, index), at = indices_line(i, dim, index);
  const int d = wrapped(dim, self_RANK);
  C extreme = self_load(from);
  long place = 0;
  const long n = self_size(d);
  for (long k = 0; k < n; ++k) {{
    const C x = self_load(from + k * self_stride(d));
    if (x != x || x {better} extreme) {{
      extreme = x;
      place = k;
    }}
    values_store(to + k * values_stride(d), extreme);
    indices_store(at + k * indices_stride(d), place);
  }}
""",
        ),
    )


# The sum so far is kept in double where the device has it: gradients are differences
# of results, which leave little of float. As PyTorch has no meta function of it, the
# result looks like self.
LOGARITHMS = Steps(
    "_logcumsumexp",
    (
        Step(
            over="self",
            along=("dim",),
            text="""
  long index[8];
  const long from = self_line(i, dim, index), to = out_line(i, dim, index);
  const int d = wrapped(dim, self_RANK);
  Wide acc = -INFINITY;
  const long n = self_size(d);
  for (long k = 0; k < n; ++k) {
    const Wide x = self_load(from + k * self_stride(d));
    const Wide most = x != x || x > acc ? x : acc, least = most == x ? acc : x;
    if (most != least || isfinite(most)) acc = most + log1p(exp(least - most));
    out_store(to + k * out_stride(d), acc);
  }
""",
        ),
    ),
    FLOATING_ONLY,
    like="self",
    flops=40,
    functions="""
#ifdef cl_khr_fp64
typedef double Wide;
#else
typedef C Wide;
#endif
""",
)

ROWS = (
    LOGARITHMS,
    Steps("cumsum", scan("(C)0", "acc + x"), NUMBERS),
    Steps("cumprod", scan("ONE", "out_TIMES(acc, x)"), NUMBERS),
    Steps("_cummax_helper", extreme(">="), ARITHMETIC),
    Steps("_cummin_helper", extreme("<="), ARITHMETIC),
)
