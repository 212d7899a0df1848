"""Rows of cumulative ops: a work-item computes a line along one dimension."""

from xpurt.kernels.kinds.custom_kernel import CONTIGUOUS, CustomKernel, Result, Step
from xpurt.kernels.kinds.element_types import COMPLEX, FLOATS
from xpurt.kernels.kinds.row import ARITHMETIC, Kind

NUMBERS = Kind(ARITHMETIC.dtypes + COMPLEX)


# The sum so far is kept in double where the device has it, as in PyTorch's CPU kernels.
# Elsewhere the part that a sum lost by rounding is added to the next one (Kahan, 1965),
# unless it is not finite.
ADDED = """
#if out_IS_FLOAT && !defined(cl_khr_fp64)
    const out_WIDE y = x - lost, sum = acc + y, before = acc;
    lost = (sum - before) - y;
    lost = lost - lost == 0 ? lost : (out_WIDE)0;
    acc = sum;
#else
    acc = acc + x;
#endif
"""
MULTIPLIED = "acc = out_TIMES(acc, x);"


def scan(begin: str, combine: str) -> tuple[Step, ...]:
    """Steps along `dim` of self. The statement `combine` changes `acc`, the combination
    so far, by `x`, the element. Both are of the type of the result, or wider."""
    return (
        Step(
            over="out",
            along=("dim",),
            text=f"""
  long index[8];
  const long from = self_line(i, dim, index), to = out_line(i, dim, index);
  const int d = wrapped(dim, self_RANK);
  out_WIDE acc = out_WIDENED(out_OF({begin}));
  out_WIDE lost = acc - acc;
  const long n = self_size(d);
  for (long k = 0; k < n; ++k) {{
    const out_T element = out_OF(self_load(from + k * self_stride(d)));
    const out_WIDE x = out_WIDENED(element);
    {combine}
    out_store(to + k * out_stride(d), out_NARROWED(acc));
  }}
""",
        ),
    )


def extreme(better: str) -> tuple[Step, ...]:
    """Steps along `dim` of self, with the extreme so far and its last position."""
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
# of results, and in float few digits of them would remain. PyTorch has no meta function
# of this op, so the result is made like self. Of complex numbers, the one with the
# larger real part is taken out of the sum. A NaN in one part makes both parts NaN from
# there on.
LOGARITHMS = CustomKernel(
    "_logcumsumexp",
    (
        Step(
            over="self",
            along=("dim",),
            text="""
  long index[8];
  const long from = self_line(i, dim, index), to = out_line(i, dim, index);
  const int d = wrapped(dim, self_RANK);
  Sum acc = NOTHING;
  const long n = self_size(d);
  for (long k = 0; k < n; ++k) {
    acc = with_another(acc, WIDENED(self_load(from + k * self_stride(d))));
    out_store(to + k * out_stride(d), NARROWED(acc));
  }
""",
        ),
    ),
    Kind(FLOATS + COMPLEX),
    like="self",
    results=(Result(laid_out_like=CONTIGUOUS),),
    flops=40,
    functions="""
#ifndef COMPLEX
typedef C R;
#endif
#ifdef cl_khr_fp64
typedef double Wide;
typedef double2 Wide2;
#else
typedef R Wide;
typedef float2 Wide2;
#endif

#ifdef COMPLEX
typedef Wide2 Sum;
#define NOTHING ((Sum)(-INFINITY, 0))
#define WIDENED(v) ((Sum)((v).x, (v).y))
#define NARROWED(v) ((C)((R)(v).x, (R)(v).y))

static Sum exponential(Sum z) {
  const Wide size = exp(z.x);
  return size == 0 ? (Sum)0 : (Sum)(size * cos(z.y), size * sin(z.y));
}

static Sum with_another(Sum a, Sum b) {
  if (isnan(a.x) || isnan(a.y) || isnan(b.x) || isnan(b.y)) return (Sum)(NAN, NAN);
  const Sum most = b.x > a.x ? b : a, least = b.x > a.x ? a : b;
  if (most.x == -INFINITY) return most;
  if (least.x == INFINITY) {
    const Sum sum = exponential(least) + exponential(most);
    return (Sum)(log(hypot(sum.x, sum.y)), atan2(sum.y, sum.x));
  }
  const Sum rest = exponential(least - most);  // at most 1
  return most + (Sum)(log1p(rest.x * (2 + rest.x) + rest.y * rest.y) / 2,
                      atan2(rest.y, 1 + rest.x));
}
#else
typedef Wide Sum;
#define NOTHING (-INFINITY)
#define WIDENED(v) (v)
#define NARROWED(v) (v)

static Sum with_another(Sum acc, Sum x) {
  const Wide most = x != x || x > acc ? x : acc, least = most == x ? acc : x;
  if (most != least || isfinite(most)) return most + log1p(exp(least - most));
  return acc;
}
#endif
""",
)

ROWS = (
    LOGARITHMS,
    CustomKernel("cumsum", scan("(C)0", ADDED), NUMBERS),
    CustomKernel("cumprod", scan("ONE", MULTIPLIED), NUMBERS),
    CustomKernel("_cummax_helper", extreme(">="), ARITHMETIC),
    CustomKernel("_cummin_helper", extreme("<="), ARITHMETIC),
)
