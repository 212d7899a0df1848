"""Rows of sampling an image at the points of a grid.

A point has one coordinate per axis of the image, the last axis first. Coordinates from
-1 to 1 are inside. A point has one tap along each axis (nearest), two (linear) or four
(cubic).
"""

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Scratch, Step
from xpurt.kernels.kinds.row import FLOATING_ONLY
from xpurt.kernels.rows.nn.windows import loops, offset

# Modes have PyTorch's numbers. Interpolation: linear, nearest, cubic. Padding: zeros,
# border, reflection.
SAMPLING = """
// The taps of a coordinate along an axis: their elements (-1: outside), their weights,
// and the derivative of each weight by the coordinate.
typedef struct {
  int count;
  long at[4];
  C weight[4], slope[4];
} Taps;

// x reflected at both ends until it is inside. Each reflection negates *slope.
static C reflected(C x, long size, bool align, C* slope) {
  const C low = align ? 0 : -0.5, span = align ? size - 1 : size;
  if (span <= 0) {
    *slope = 0;
    return 0;
  }
  x -= low;
  if (x < 0) {
    x = -x;
    *slope = -*slope;
  }
  const C flips = floor(x / span), rest = fmod(x, span);
  if (fmod(flips, 2) == 0) return rest + low;
  *slope = -*slope;
  return span - rest + low;
}

// x moved into the image. *slope becomes 0 where the result is constant. NaN becomes 0.
static C padded(C x, long size, long mode, bool align, C* slope) {
  if (mode == 0) return x;
  if (mode == 2) x = reflected(x, size, align, slope);
  if (!(x > 0)) {
    *slope = 0;
    return 0;
  }
  if (x >= size - 1) {
    *slope = 0;
    return size - 1;
  }
  return x;
}

// NaN is inside, for its weights are NaN.
static long inside(C x, long size) {
  return x >= 0 && x <= size - 1 ? (long)x : x == x ? -1 : 0;
}

static Taps taps_of(C x, long size, long interpolation, long padding, bool align) {
  Taps taps;
  C scale = align ? (C)(size - 1) / 2 : (C)size / 2;
  x = align ? (x + 1) / 2 * (size - 1) : ((x + 1) * size - 1) / 2;
  if (interpolation == 2) {  // Keys, 1981, with a = -0.75
    const C a = -0.75, base = floor(x);
    taps.count = 4;
    for (int t = 0; t < 4; ++t) {
      const C from = x - (base - 1 + t), d = fabs(from);
      const C slope = d <= 1 ? (3 * (a + 2) * d - 2 * (a + 3)) * d
                             : (3 * a * d - 10 * a) * d + 8 * a;
      C unused = 1;
      taps.weight[t] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1
                              : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
      taps.slope[t] = (from < 0 ? -slope : slope) * scale;
      taps.at[t] = inside(padded(base - 1 + t, size, padding, align, &unused), size);
    }
    return taps;
  }
  x = padded(x, size, padding, align, &scale);
  if (interpolation == 1) {
    taps.count = 1;
    taps.at[0] = x == x ? inside(rint(x), size) : -1;
    taps.weight[0] = 1;
    taps.slope[0] = 0;
    return taps;
  }
  const C base = floor(x);
  taps.count = 2;
  taps.at[0] = inside(base, size);
  taps.at[1] = inside(base + 1, size);
  taps.weight[1] = x - base;
  taps.weight[0] = 1 - taps.weight[1];
  taps.slope[1] = scale;
  taps.slope[0] = -scale;
  return taps;
}
"""


def taps(axes: int) -> str:
    """Declares the taps of the grid's point at offset `from`."""
    return "".join(
        f"  const Taps taps{d} = taps_of(\n"
        f"      grid_load(from + {axes - 1 - d} * grid_stride({axes + 1})),\n"
        f"      input_size({d + 2}), interpolation_mode, padding_mode, align_corners);\n"
        for d in range(axes)
    )


HEAD = (
    "  for (int t{d} = 0; t{d} < taps{d}.count; ++t{d}) {{\n"
    "    const long y{d} = taps{d}.at[t{d}];\n"
    "    if (y{d} < 0) continue;\n"
)


def weight(axes: int, steep: int | None = None) -> str:
    """The weight of a tap, or its derivative along the axis `steep`."""
    return " * ".join(
        f"taps{d}.{'slope' if d == steep else 'weight'}[t{d}]" for d in range(axes)
    )


# PyTorch's CPU kernel of images multiplies taps outside, as 0, by their weights: a
# coordinate that is NaN or infinite makes NaN wherever the others are.
OUTSIDE = "  sum += 0 * (taps0.weight[0] + taps1.weight[0]);\n"
OUTSIDE_GRADIENTS = """\
  const C none0 = 0 * taps0.weight[0], none1 = 0 * taps1.weight[0];
  sum0 += interpolation_mode == 2 ? none0 + none1 : none1;
  sum1 += interpolation_mode == 2 ? none0 + none1 : none0;
"""


def forward(axes: int) -> Step:
    place = " + ".join(f"index[{d + 2}] * grid_stride({d + 1})" for d in range(axes))
    at = offset("input", axes, "y")
    return Step(
        over="out",
        text=f"""
  long index[8];
  const long to = out_unravel(i, index);
  const long from = index[0] * grid_stride(0) + {place};
  const long base = index[0] * input_stride(0) + index[1] * input_stride(1);
{taps(axes)}
  C sum = 0;
{loops(axes, HEAD, f"    sum += {weight(axes)} * input_load(base + {at});{chr(10)}")}
{OUTSIDE if axes == 2 else ""}
  out_store(to, sum);
""",
    )


# A point at NaN has no element, unless each tap of it is moved into the image.
PUT = """\
    const long at = base + {at};
    const C share = {weight};
    const bool moved = interpolation_mode == 2 && padding_mode != 0;
    if (share == share || moved) sums_store(at, sums_load(at) + g * share);
"""


def to_input(axes: int) -> Step:
    """A work-item computes one channel of an image, and alone writes to it."""
    at = offset("sums", axes, "y")
    names = [f"o{d}" for d in range(axes)]
    head = (
        "  for (long o{d} = 0; o{d} < grad_output_size(grad_output_RANK - AXES + {d});"
        " ++o{d}) {{\n"
    ).replace("AXES", str(axes))
    clear = (
        "  for (long y{d} = 0; y{d} < sums_size(sums_RANK - AXES + {d}); ++y{d}) {{\n"
    )
    place = " + ".join(f"{o} * grid_stride({d + 1})" for d, o in enumerate(names))
    body = f"""
    const long from = n * grid_stride(0) + {place};
    const C g = grad_output_load(beside + {offset("grad_output", axes, "o")});
{taps(axes)}
{
        loops(
            axes,
            HEAD,
            PUT.format(at=at, weight=weight(axes)),
        )
    }
"""
    return Step(
        over="sums",
        along=tuple(str(d + 2) for d in range(axes)),
        text=f"""
  const long n = i / input_size(1), c = i % input_size(1);
  const long base = n * sums_stride(0) + c * sums_stride(1);
  const long beside = n * grad_output_stride(0) + c * grad_output_stride(1);
{loops(axes, clear.replace("AXES", str(axes)), f"    sums_store(base + {at}, 0);{chr(10)}")}
{loops(axes, head, body)}
""",
    )


# The 16-bit types would round after each addition.
FROM_SUMS = Step(
    over="out0",
    text="""
  long index[8];
  const long to = out0_unravel(i, index);
  out0_store(to, sums_load(i));
""",
)


def to_grid(axes: int) -> Step:
    """A work-item computes the gradient of one point of the grid."""
    sums = "".join(f"    sum{d} += {weight(axes, d)} * product;\n" for d in range(axes))
    index = "".join(
        f"  const long o{d} = rest % grid_size({d + 1});\n  rest /= grid_size({d + 1});\n"
        for d in reversed(range(axes))
    )
    place = " + ".join(f"o{d} * grid_stride({d + 1})" for d in range(axes))
    to = " + ".join(f"o{d} * out1_stride({d + 1})" for d in range(axes))
    stores = "".join(
        f"  out1_store(to + {axes - 1 - d} * out1_stride({axes + 1}), sum{d});\n"
        for d in range(axes)
    )
    body = f"""
    C product = 0;
    const long at = n * input_stride(0) + {offset("input", axes, "y")};
    for (long c = 0; c < input_size(1); ++c) {{
      product += input_load(at + c * input_stride(1))
                 * grad_output_load(beside + c * grad_output_stride(1));
    }}
{sums}"""
    return Step(
        over="out1",
        along=(str(axes + 1),),
        text=f"""
  long rest = i;
{index}
  const long n = rest;
  const long from = n * grid_stride(0) + {place};
  const long to = n * out1_stride(0) + {to};
  const long beside =
      n * grad_output_stride(0) + {offset("grad_output", axes, "o")};
  C {", ".join(f"sum{d} = 0" for d in range(axes))};
{taps(axes)}
{loops(axes, HEAD, body)}
{OUTSIDE_GRADIENTS if axes == 2 else ""}
{stores}
""",
    )


def rows(axes: int) -> tuple[CustomKernel, ...]:
    return (
        CustomKernel(
            f"grid_sampler_{axes}d",
            (forward(axes),),
            FLOATING_ONLY,
            functions=SAMPLING,
            alike=("grid",),
            flops=40,
        ),
        CustomKernel(
            f"grid_sampler_{axes}d_backward",
            (to_input(axes), FROM_SUMS, to_grid(axes)),
            FLOATING_ONLY,
            scratch=(Scratch("sums", "input"),),
            functions=SAMPLING,
            alike=("grid",),
            flops=80,
        ),
    )


ROWS = (*rows(2), *rows(3))
