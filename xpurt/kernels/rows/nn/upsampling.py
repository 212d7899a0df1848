"""Rows of upsampling: along each axis, an element is a weighted sum of a few elements.

An element of the result is a sum over its taps along each axis. Backward, a work-item
computes an element of the input's gradient, and finds the elements of which it was a
tap. These are adjacent, since taps never go back, and a bisection finds the first one.
"""

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Result, Step
from xpurt.kernels.kinds.element_types import FLOATS
from xpurt.kernels.kinds.row import FLOATING_ONLY, Kind
from xpurt.kernels.rows.nn.windows import loops, offset, origin, place

COPIED = Kind(FLOATS + "u")

# R is the type of coordinates and weights. Along an axis, `size` elements become
# `count`. Element o has the coordinate `at` and TAPS taps, which begin at base_of(at).
# tap_of clamps them to the axis, and weight_of gives their weights.
INVERSE = """
// 1 / (factor + low), rounded once: the choice of the nearest element may depend on it.
static R inverse(R factor, R low) {
  const R q = 1 / factor;
  return q + q * (fma(-q, factor, (R)1) - q * low);
}
"""

NEAREST = """
#define TAPS 1
typedef float R;
INVERSE
static R scale_of(long size, long count, bool align, bool given, R factor, R low) {
  return given && factor > 0 ? inverse(factor, low) : (R)size / (R)count;
}
static R at_of(long o, long size, long count, R scale, bool align) {
  if (count == size) return o;
  return OFFSET == 0 && count == 2 * size ? (R)(o >> 1) : (o + OFFSET) * scale;
}
static long base_of(R at, long size) { return min((long)(int)at, size - 1); }
static long tap_of(long base, int t, long size) { return base; }
static R weight_of(R at, long base, int t) { return 1; }
""".replace("INVERSE", INVERSE)

SCALED = """
typedef C R;
INVERSE
static R scale_of(long size, long count, bool align, bool given, R factor, R low) {
  if (align) return count > 1 ? (R)(size - 1) / (count - 1) : 0;
  return given && factor > 0 ? inverse(factor, low) : (R)size / (R)count;
}
""".replace("INVERSE", INVERSE)

LINEAR = (
    "#define TAPS 2\n"
    + SCALED
    + """
static R at_of(long o, long size, long count, R scale, bool align) {
  if (count == size) return o;
  return align ? o * scale : max((o + (R)0.5) * scale - (R)0.5, (R)0);
}
static long base_of(R at, long size) { return min((long)(int)at, size - 1); }
static long tap_of(long base, int t, long size) { return min(base + t, size - 1); }
static R weight_of(R at, long base, int t) {
  const R rest = clamp(at - base, (R)0, (R)1);
  return t == 0 ? 1 - rest : rest;
}
"""
)

# Keys, 1981, with a = -0.75.
CUBIC = (
    "#define TAPS 4\n"
    + SCALED
    + """
static R at_of(long o, long size, long count, R scale, bool align) {
  return align ? o * scale : (o + (R)0.5) * scale - (R)0.5;
}
static long base_of(R at, long size) { return (long)(int)floor(at) - 1; }
static long tap_of(long base, int t, long size) { return clamp(base + t, 0L, size - 1); }
static R weight_of(R at, long base, int t) {
  const R x = fabs(at - (base + t)), a = -0.75;
  return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1
                : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}
"""
)

# The elements of which element y of the input was a tap: from first_of to the last one
# for which reaches() is true. Elements at the edges are taps of all positions beyond.
BACKWARD = """
static long first_of(long y, long size, long count, R scale, bool align) {
  long low = 0, high = y == 0 ? 0 : count;
  while (low < high) {
    const long middle = (low + high) / 2;
    const long base = base_of(at_of(middle, size, count, scale, align), size);
    if (base + TAPS - 1 < y) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
static bool reaches(long o, long y, long size, long count, R scale, bool align) {
  if (o >= count) return false;
  return y == size - 1 || base_of(at_of(o, size, count, scale, align), size) <= y;
}
static R share_of(long o, long y, long size, long count, R scale, bool align) {
  const R at = at_of(o, size, count, scale, align);
  const long base = base_of(at, size);
  R share = 0;
  for (int t = 0; t < TAPS; ++t) {
    if (tap_of(base, t, size) == y) share += weight_of(at, base, t);
  }
  return share;
}
"""


def factors(axes: int) -> tuple[str, ...]:
    """The names of the factors in the schemas."""
    return ("scales",) if axes == 1 else ("scales_d", "scales_h", "scales_w")[-axes:]


def arguments(axes: int, aligns: bool) -> str:
    """ALIGN and FACTOR(d): the arguments of a call for each axis."""
    lines = [f"#define ALIGN {'align_corners' if aligns else 'false'}"]
    for d, name in enumerate(factors(axes)):
        lines += [
            f"#if HAS_{name}",
            f"#define FACTOR{d} true, {name}, LOW_{name}",
            "#else",
            f"#define FACTOR{d} false, 0, 0",
            "#endif",
        ]
    return "\n" + "\n".join(lines) + "\n"


def scales(axes: int) -> str:
    return "".join(
        f"  const R scale{d} = scale_of(size{d}, count{d}, ALIGN, FACTOR{d});\n"
        for d in range(axes)
    )


def forward(axes: int) -> Step:
    sizes = "".join(
        f"  const long size{d} = self_size({d + 2}), count{d} = out_size({d + 2});\n"
        for d in range(axes)
    )
    ats = "".join(
        f"  const R at{d} = at_of(o{d}, size{d}, count{d}, scale{d}, ALIGN);\n"
        f"  const long base{d} = base_of(at{d}, size{d});\n"
        for d in range(axes)
    )
    head = (
        '  _Pragma("unroll") for (int t{d} = 0; t{d} < TAPS; ++t{d}) {{\n'
        "    const long y{d} = tap_of(base{d}, t{d}, size{d});\n"
    )
    weight = " * ".join(f"weight_of(at{d}, base{d}, t{d})" for d in range(axes))
    body = f"    sum += {weight} * self_load(base + {offset('self', axes, 'y')});\n"
    return Step(
        over="out",
        text=f"""
{place("out", axes, "o")}
{origin("out", axes)}
  const long base = self_at(index);
{sizes}{scales(axes)}{ats}
  C sum = 0;
{loops(axes, head, body)}
  out_store(to, sum);
""",
    )


def backward(axes: int) -> Step:
    sizes = "".join(
        f"  const long size{d} = out_size({d + 2});\n"
        f"  const long count{d} = grad_output_size({d + 2});\n"
        for d in range(axes)
    )
    head = (
        "  for (long o{d} = first_of(y{d}, size{d}, count{d}, scale{d}, ALIGN);\n"
        "       reaches(o{d}, y{d}, size{d}, count{d}, scale{d}, ALIGN); ++o{d}) {{\n"
        "    const R share{d} =\n"
        "        share_of(o{d}, y{d}, size{d}, count{d}, scale{d}, ALIGN);\n"
    )
    weight = " * ".join(f"share{d}" for d in range(axes))
    at = offset("grad_output", axes, "o")
    return Step(
        over="out",
        text=f"""
{place("out", axes, "y")}
{origin("out", axes)}
  const long base = grad_output_at(index);
{sizes}{scales(axes)}
  C sum = 0;
{loops(axes, head, f"    sum += {weight} * grad_output_load(base + {at});{chr(10)}")}
  out_store(to, sum);
""",
    )


def rows(
    name: str, axes: int, mode: str, kind: Kind, aligns: bool
) -> tuple[CustomKernel, ...]:
    functions = arguments(axes, aligns) + mode
    return (
        CustomKernel(
            name,
            (forward(axes),),
            kind,
            functions=functions,
            results=(Result(laid_out_like="self"),),
            flops=20,
        ),
        CustomKernel(
            f"{name}_backward",
            (backward(axes),),
            kind,
            functions=functions + BACKWARD,
            flops=40,
        ),
    )


def nearest(begin: str) -> str:
    """The text of nearest upsampling; coordinates are offset by `begin`."""
    return f"#define OFFSET ((R){begin})\n{NEAREST}"


ROWS = (
    *(
        row
        for axes in (1, 2, 3)
        for name, begin in (
            ("upsample_nearest", "0"),
            ("_upsample_nearest_exact", "0.5"),
        )
        for row in rows(f"{name}{axes}d", axes, nearest(begin), COPIED, aligns=False)
    ),
    *rows("upsample_linear1d", 1, LINEAR, FLOATING_ONLY, aligns=True),
    *rows("upsample_bilinear2d", 2, LINEAR, FLOATING_ONLY, aligns=True),
    *rows("upsample_trilinear3d", 3, LINEAR, FLOATING_ONLY, aligns=True),
    *rows("upsample_bicubic2d", 2, CUBIC, FLOATING_ONLY, aligns=True),
)
