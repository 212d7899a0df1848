"""Rows of normalization over lines, and definitions shared by all normalizations.

Means and variances take two passes in the type of the computation. The second one also
adds up the differences from the mean, which are 0 but for the rounding of the mean, and
corrects the variance by them (Chan, Golub and LeVeque, 1983). Sums over elements that are
not adjacent in memory are computed in parts, which another step adds up.
"""

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Result, Scratch, Step
from xpurt.kernels.kinds.row import FLOATING_ONLY

PARTS = 16  # parts of a sum

# Means and deviations have the type of the parameters, if there are any.
OF_PARAMETERS = Result(type_of=("weight", "bias", "input"))

# along(first, last, statements) runs the statements for each j; adjacent lanes have
# adjacent j. The vectorizer of a CPU device needs a loop without a condition inside. OpenCL
# C has no variadic macros, so a comma stands in parentheses only.
SHARED = """
#define plus(a, b) ((a) + (b))
#define along(first, last, statements)                  \\
  {                                                     \\
    long before = (first);                              \\
    for (; before + LANES <= (last); before += LANES) { \\
      const long j = before + lane;                     \\
      statements                                        \\
    }                                                   \\
    if (before + lane < (last)) {                       \\
      const long j = before + lane;                     \\
      statements                                        \\
    }                                                   \\
  }
#if HAS_weight
#define weight_of(j) weight_load(j)
#else
#define weight_of(j) 1
#endif
#if HAS_bias
#define bias_of(j) bias_load(j)
#else
#define bias_of(j) 0
#endif
"""

# Products are rounded wherever they are used, so that a line of one element has
# differences of exactly 0.
NORMALIZES = "#pragma OPENCL FP_CONTRACT OFF" + SHARED

FORWARD = Step(
    over="out1",
    lanes=True,
    also_reads=("weight", "bias"),
    text="""
  const long n = input_numel / out1_numel, base = i * n;
  C sum = 0, rest = 0, squares = 0;
  in_blocks(0, n) {
    C block = 0;
    along(begin, end, block += input_load(base + j);)
    sum += block;
  }
  across(sum, plus)
  const C mean = sum / n;
  in_blocks(0, n) {
    C block = 0, block_squares = 0;
    along(begin, end,
      const C x = input_load(base + j) - mean;
      block += x;
      block_squares += x * x;
    )
    rest += block;
    squares += block_squares;
  }
  across(rest, plus)
  across(squares, plus)
  const C off = rest / n;
  const C variance = squares / n - off * off;
  const C rstd = 1 / sqrt((variance < 0 ? 0 : variance) + (C)eps);
  along(0, n,
    const C x = (input_load(base + j) - mean - off) * rstd;
    out0_store(base + j, x * weight_of(j) + bias_of(j));
  )
  if (lane == 0) {
    out1_store(i, mean + off);
    out2_store(i, rstd);
  }
""",
)

# From the variance that oneDNN computes; and, for oneDNN's gradients, the variance with
# eps included.
RSTD = Step(
    over="out2",
    part="after",
    text="""
  out2_store(i, 1 / sqrt(variances_load(i) + (C)eps));
""",
)

VARIANCE = Step(
    over="variances",
    part="before",
    text="""
  const C rstd = rstd_load(i);
  variances_store(i, 1 / (rstd * rstd));
""",
)

TO_INPUT = Step(
    over="mean",
    lanes=True,
    also_reads=("weight",),
    text="""
#if HAS_out0
  const long n = input_numel / mean_numel, base = i * n;
  const C middle = mean_load(i), scale = rstd_load(i);
  C sum = 0, product = 0;
  in_blocks(0, n) {
    C block = 0, block_product = 0;
    along(begin, end,
      const C g = grad_out_load(base + j) * weight_of(j);
      block += g;
      block_product += g * (input_load(base + j) - middle) * scale;
    )
    sum += block;
    product += block_product;
  }
  across(sum, plus)
  across(product, plus)
  sum /= n;
  product /= n;
  along(0, n,
    const C x = (input_load(base + j) - middle) * scale;
    const C g = grad_out_load(base + j) * weight_of(j);
    out0_store(base + j, scale * (g - sum - x * product));
  )
#endif
""",
)

# Each part has a share of the lines; a work-item computes one column of one part.
TO_PARTS = Step(
    over="weight_parts",
    text=f"""
  const long n = out1_numel, lines = mean_numel;
  const long part = i / n, column = i % n;
  const long share = (lines + {PARTS - 1}) / {PARTS};
  const long last = min(lines, (part + 1) * share);
  C sum = 0, product = 0;
  for (long m = part * share; m < last; ++m) {{
    const C g = grad_out_load(m * n + column);
    sum += g;
    product += g * (input_load(m * n + column) - mean_load(m)) * rstd_load(m);
  }}
  weight_parts_store(i, product);
  bias_parts_store(i, sum);
""",
)

TO_WEIGHT = Step(
    over="out1",
    text=f"""
  C sum = 0;
  for (long part = 0; part < {PARTS}; ++part) {{
    sum += weight_parts_load(part * out1_numel + i);
  }}
  out1_store(i, sum);
""",
)

TO_BIAS = Step(
    over="out2",
    text=f"""
  C sum = 0;
#if HAS_out1
  for (long part = 0; part < {PARTS}; ++part) {{
    sum += bias_parts_load(part * out2_numel + i);
  }}
#else
  for (long m = 0; m < mean_numel; ++m) sum += grad_out_load(m * out2_numel + i);
#endif
  out2_store(i, sum);
""",
)

ROWS = (
    CustomKernel(
        "native_layer_norm",
        (FORWARD, RSTD),
        FLOATING_ONLY,
        parameters=("weight", "bias"),
        scratch=(Scratch("variances", "out1"),),
        functions=NORMALIZES,
        contiguous=("input", "weight", "bias"),
        rows=("input", "out0", "out1", "out2", "variances"),
        results=(Result(), OF_PARAMETERS, OF_PARAMETERS),
        flops=8,
        primitive="layer_norm",
    ),
    CustomKernel(
        "native_layer_norm_backward",
        (TO_INPUT, TO_PARTS, TO_WEIGHT, TO_BIAS, VARIANCE),
        FLOATING_ONLY,
        scratch=(
            Scratch("weight_parts", "out1", copies=PARTS),
            Scratch("bias_parts", "out1", copies=PARTS),
            Scratch("variances", "mean"),
        ),
        functions=NORMALIZES,
        contiguous=("grad_out", "input", "mean", "rstd", "weight"),
        flops=16,
        primitive="layer_norm_backward",
    ),
)
