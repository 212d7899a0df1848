"""Kernels of Fourier transforms: passes over all elements, and tables of roots."""

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.element_types import COMPLEX
from xpurt.kernels.kinds.row import Kind

KIND = Kind(COMPLEX)

# The number of elements that a work-item transforms in a pass: one of these.
RADICES = (8, 4, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31)


def choice_of_radix() -> str:
    lines = [f"#if radix_IS_{n}\n#define RADIX {n}\n#endif" for n in RADICES]
    return "\n".join(lines)


# `turn` is -1 for a transform and 1 for its inverse.
FUNCTIONS = """
#ifdef cl_khr_fp64
typedef double Wide;
#else
typedef R Wide;
#endif

// exp(-2 pi i k / whole) for k < whole. The angle is reduced to an eighth of a turn by
// integers.
static C root_of_unity(ulong k, ulong whole) {
  const ulong eighth = 8 * k / whole, rest = 8 * k - eighth * whole;
  const Wide part = (Wide)(eighth % 2 == 0 ? rest : whole - rest) / (Wide)whole / 4;
  const Wide c = cospi(part), s = sinpi(part);
  const int quarter = (eighth + 1) / 2 % 4;
  const bool mirrored = eighth % 2 == 1;
  // The angle is a number of quarter turns plus or minus the part.
  const Wide sine = mirrored ? -s : s;
  const Wide x = quarter == 0 ? c : quarter == 1 ? -sine : quarter == 2 ? -c : sine;
  const Wide y = quarter == 0 ? sine : quarter == 1 ? c : quarter == 2 ? -sine : -c;
  return (C)((R)x, (R)-y);
}

static C quarter_turned(C z, R turn) { return (C)(-turn * z.y, turn * z.x); }

static void transform_of_4(C* v, int first, int apart, R turn) {
  const C v0 = v[first], v1 = v[first + apart], v2 = v[first + 2 * apart],
          v3 = v[first + 3 * apart];
  const C even = v0 + v2, odd = v1 + v3;
  const C over_even = v0 - v2, over_odd = quarter_turned(v1 - v3, turn);
  v[first] = even + odd;
  v[first + apart] = over_even + over_odd;
  v[first + 2 * apart] = even - odd;
  v[first + 3 * apart] = over_even - over_odd;
}
"""

# Stockham: see Cochran et al., "What Is the Fast Fourier Transform?", 1967. x is an
# array of outer x RADIX x m x inner elements, and out one of outer x m x RADIX x inner,
# where the number of passes that were done is in `inner`. `roots` has those of a whole
# line.
PASS = Step(
    over="x",
    along=("1",),
    text=f"""
{choice_of_radix()}
  const long m = x_size(2), inner = x_size(3);
  const long q = i % inner, p = i / inner % m, o = i / inner / m;
  const long from = o * x_stride(0) + p * x_stride(2) + q * x_stride(3);
  const long to = o * out_stride(0) + p * out_stride(1) + q * out_stride(3);
  const R turn = inverse ? 1 : -1;
  C v[RADIX];
  for (int k = 0; k < RADIX; ++k) v[k] = x_load(from + k * x_stride(1));
#if RADIX == 2
  const C second = v[1];
  v[1] = v[0] - second;
  v[0] = v[0] + second;
#elif RADIX == 4
  transform_of_4(v, 0, 1, turn);
#elif RADIX == 8
  transform_of_4(v, 0, 2, turn);
  transform_of_4(v, 1, 2, turn);
  const R half_root = 0.7071067811865476;
  C w[4];
  w[0] = v[1];
  w[1] = half_root * (v[3] + quarter_turned(v[3], turn));
  w[2] = quarter_turned(v[5], turn);
  w[3] = half_root * (quarter_turned(v[7], turn) - v[7]);
  for (int k = 0; k < 4; ++k) v[k] = v[2 * k];
  for (int k = 0; k < 4; ++k) {{
    v[k + 4] = v[k] - w[k];
    v[k] = v[k] + w[k];
  }}
#else
  // Symmetric and antisymmetric parts of pairs: half of the products.
  C w[RADIX], plus[RADIX / 2 + 1], minus[RADIX / 2 + 1];
  for (int k = 0; k < RADIX; ++k) {{
    w[k] = roots_load(k * (roots_numel / RADIX));
    w[k].y *= -turn;
  }}
  for (int j = 1; j <= RADIX / 2; ++j) {{
    plus[j] = v[j] + v[RADIX - j];
    minus[j] = quarter_turned(v[j] - v[RADIX - j], 1);
  }}
  const C first = v[0];
  for (int j = 1; j <= RADIX / 2; ++j) v[0] += plus[j];
  for (int k = 1; k <= RADIX / 2; ++k) {{
    C even = first, odd = 0;
    for (int j = 1; j <= RADIX / 2; ++j) {{
      even += plus[j] * w[j * k % RADIX].x;
      odd += minus[j] * w[j * k % RADIX].y;
    }}
    v[k] = even + odd;
    v[RADIX - k] = even - odd;
  }}
#endif
  const long step_of_root = roots_numel / (RADIX * m) * p;
  for (int k = 0; k < RADIX; ++k) {{
    C twiddle = roots_load(k * step_of_root);
    twiddle.y *= -turn;
    out_store(to + k * out_stride(2), fused_times(v[k], twiddle) * (R)scale);
  }}
""",
)

# Without a chirp the root k / period, with it the root k^2 / period.
TABLE = Step(
    over="out",
    text="""
  out_store(i, root_of_unity(chirp ? (ulong)i * i % period : i, period));
""",
)

ROWS = (
    CustomKernel(
        "xpurt::fourier_pass",
        (PASS,),
        KIND,
        schema="(Tensor x, Tensor roots, Tensor(a!) out, bool inverse, float scale, "
        "str radix) -> ()",
        functions=FUNCTIONS,
        flops=30,
    ),
    CustomKernel(
        "xpurt::roots_of_unity",
        (TABLE,),
        KIND,
        schema="(Tensor(a!) out, int period, bool chirp) -> ()",
        functions=FUNCTIONS,
        flops=60,
    ),
)
