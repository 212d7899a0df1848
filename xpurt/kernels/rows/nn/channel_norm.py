"""Rows of normalization over channels: batch norm.

Tensors may be contiguous or channels_last. In both, runs of `inner` elements of one
channel are adjacent in memory.
"""

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Result, Scratch, Step
from xpurt.kernels.kinds.row import FLOATING_ONLY
from xpurt.kernels.rows.nn.normalization import NORMALIZES, PARTS

# The offset of element e of a channel, and the channel of an offset. 32-bit divisions
# are much faster than 64-bit ones.
CHANNELS = (
    NORMALIZES
    + """
// The condition is the same for all lanes.
#define divided(x, y) \\
  (input_numel >> 31 == 0 ? (long)((uint)(x) / (uint)(y)) : (x) / (y))
#define in_channel(e, c, channels, inner) \\
  ((divided(e, inner) * (channels - 1) + (c)) * inner + (e))
#define channel_of(i, channels, inner) \\
  (divided(i, inner) - divided(divided(i, inner), channels) * channels)
#define CHANNEL_LAYOUT                                       \\
  const long channels = input_size(1);                       \\
  const long inner = channels == 1 ? 1 : input_stride(1);    \\
  const long count = input_numel / channels;                 \\
  const long share = (count + PARTS - 1) / PARTS;
"""
).replace("PARTS", str(PARTS))

# Each part of a channel has its own mean and sum of squares. They are combined as in
# Chan, Golub and LeVeque, 1979.
PART_MOMENTS = Step(
    over="mean_parts",
    lanes=True,
    text="""
  CHANNEL_LAYOUT
  const long part = i / channels, c = i % channels;
  const long first = part * share, last = min(count, first + share);
  C sum = 0, rest = 0, squares = 0;
  in_blocks(first, last) {
    C block = 0;
    along(begin, end, block += input_load(in_channel(j, c, channels, inner));)
    sum += block;
  }
  across(sum, plus)
  const C mean = last > first ? sum / (last - first) : 0;
  in_blocks(first, last) {
    C block = 0, block_squares = 0;
    along(begin, end,
      const C x = input_load(in_channel(j, c, channels, inner)) - mean;
      block += x;
      block_squares += x * x;
    )
    rest += block;
    squares += block_squares;
  }
  across(rest, plus)
  across(squares, plus)
  if (lane == 0) {
    const C off = last > first ? rest / (last - first) : 0;
    mean_parts_store(i, mean + off);
    const C around = squares - off * rest;
    squares_parts_store(i, around < 0 ? 0 : around);
  }
""",
)

# Stores the saved statistics, from the mean, the sum of squares, and `spread`, which is
# the variance + eps.
KEEP = """
  out2_store(i, spread == 0 ? 0 : 1 / sqrt(spread));
#if HAS_running_mean
  const long at = i * running_mean_stride(0);
  running_mean_store(at, momentum * mean + (1 - momentum) * running_mean_load(at));
#endif
#if HAS_running_var
  const long to = i * running_var_stride(0);
  running_var_store(to, momentum * squares / (count - 1)
                            + (1 - momentum) * running_var_load(to));
#endif
"""

MOMENTS = Step(
    over="out1",
    text=f"""
  CHANNEL_LAYOUT
  C sum = 0, squares = 0;
  for (long part = 0; part < {PARTS}; ++part) {{
    const long size = max(0L, min(share, count - part * share));
    sum += size * mean_parts_load(part * channels + i);
  }}
  const C mean = sum / count;
  for (long part = 0; part < {PARTS}; ++part) {{
    const long size = max(0L, min(share, count - part * share));
    const C x = mean_parts_load(part * channels + i) - mean;
    squares += squares_parts_load(part * channels + i) + size * x * x;
  }}
  const C spread = squares / count + (C)eps;
  out1_store(i, mean);
{KEEP}""",
)

# Runs after oneDNN, which computes the mean and the variance, and does not update the
# running statistics.
KEPT = Step(
    over="out1",
    part="after",
    text=f"""
  CHANNEL_LAYOUT
  const C mean = out1_load(i), variance = variances_load(i);
  const C spread = variance + (C)eps, squares = variance * count;
{KEEP}""",
)

NORMALIZE = Step(
    over="out0",
    also_reads=("weight", "bias"),
    text="""
  CHANNEL_LAYOUT
  const long c = channel_of(i, channels, inner);
  C mean, rstd;
  if (out1_numel > 0) {
    mean = out1_load(c);
    rstd = out2_load(c);
  } else {
#if HAS_running_mean && HAS_running_var
    mean = running_mean_load(c * running_mean_stride(0));
    rstd = 1 / sqrt(running_var_load(c * running_var_stride(0)) + (C)eps);
#else
    mean = rstd = NAN;
#endif
  }
  out0_store(i, (input_load(i) - mean) * rstd * weight_of(c) + bias_of(c));
""",
)

# Statistics for the backward, which sums the gradient, and its products with the input
# minus the mean.
STATISTICS = """
#if HAS_running_mean && HAS_running_var
#define mean_of(c) \\
  (train ? save_mean_load(c) : running_mean_load((c) * running_mean_stride(0)))
#define rstd_of(c)              \\
  (train ? save_invstd_load(c)  \\
         : 1 / sqrt(running_var_load((c) * running_var_stride(0)) + (C)eps))
#else
#define mean_of(c) save_mean_load(c)
#define rstd_of(c) save_invstd_load(c)
#endif
"""
STATISTICS_READ = ("save_mean", "save_invstd", "running_mean", "running_var")

# The mean and variance in the form that oneDNN reads for the gradients. The variance
# includes eps, as 1 / sqrt(variance) is the saved deviation.
GIVEN = Step(
    over="means",
    part="before",
    also_reads=STATISTICS_READ,
    text="""
  const C rstd = rstd_of(i);
  means_store(i, mean_of(i));
  variances_store(i, 1 / (rstd * rstd));
""",
)

PART_SUMS = Step(
    over="sum_parts",
    lanes=True,
    also_reads=STATISTICS_READ,
    text="""
  CHANNEL_LAYOUT
  const long part = i / channels, c = i % channels;
  const long first = part * share, last = min(count, first + share);
  const C mean = mean_of(c);
  C sum = 0, product = 0;
  in_blocks(first, last) {
    C block = 0, block_product = 0;
    along(begin, end,
      const long at = in_channel(j, c, channels, inner);
      const C g = grad_out_load(at);
      block += g;
      block_product += g * (input_load(at) - mean);
    )
    sum += block;
    product += block_product;
  }
  across(sum, plus)
  across(product, plus)
  if (lane == 0) {
    sum_parts_store(i, sum);
    dot_parts_store(i, product);
  }
""",
)

SUMS = Step(
    over="sums",
    also_reads=STATISTICS_READ,
    text=f"""
  CHANNEL_LAYOUT
  C sum = 0, product = 0;
  for (long part = 0; part < {PARTS}; ++part) {{
    sum += sum_parts_load(part * channels + i);
    product += dot_parts_load(part * channels + i);
  }}
  sums_store(i, sum);
  dots_store(i, product);
#if HAS_out1
  out1_store(i, product * rstd_of(i));
#endif
#if HAS_out2
  out2_store(i, sum);
#endif
""",
)

TO_INPUT = Step(
    over="out0",
    also_reads=("weight", *STATISTICS_READ),
    text="""
  CHANNEL_LAYOUT
  const long c = channel_of(i, channels, inner);
  const C rstd = rstd_of(c);
  C g = grad_out_load(i);
  if (train) {
    g -= sums_load(c) / count;
    g -= (input_load(i) - mean_of(c)) * rstd * rstd * dots_load(c) / count;
  }
  out0_store(i, g * rstd * weight_of(c));
""",
)

LIKE_INPUT = Result(laid_out_like="input")
SAVED = Result(
    type_of=("weight", "bias", "running_mean", "input"), empty_without="training"
)

ROWS = (
    *(
        CustomKernel(
            name,
            (PART_MOMENTS, MOMENTS, NORMALIZE, KEPT),
            FLOATING_ONLY,
            scratch=(
                Scratch("mean_parts", "out1", copies=PARTS),
                Scratch("squares_parts", "out1", copies=PARTS),
                Scratch("variances", "out1"),
            ),
            functions=CHANNELS,
            contiguous=("weight", "bias"),
            dense=("input",),
            results=(LIKE_INPUT, SAVED, SAVED),
            parameters=("weight", "bias", "running_mean", "running_var"),
            per_channel=True,
            overloads=overloads,
            flops=8,
            primitive="batch_norm",
        )
        # The overload `out` has no meta function.
        for name, overloads in (
            ("native_batch_norm", ()),
            ("_native_batch_norm_legit", ("", "no_stats")),
        )
    ),
    CustomKernel(
        "native_batch_norm_backward",
        (PART_SUMS, SUMS, TO_INPUT, GIVEN),
        FLOATING_ONLY,
        scratch=(
            Scratch("sum_parts", "input", dims=(1,), copies=PARTS),
            Scratch("dot_parts", "input", dims=(1,), copies=PARTS),
            Scratch("sums", "input", dims=(1,)),
            Scratch("dots", "input", dims=(1,)),
            Scratch("means", "input", dims=(1,)),
            Scratch("variances", "input", dims=(1,)),
        ),
        functions=CHANNELS + STATISTICS,
        contiguous=("weight", "save_mean", "save_invstd"),
        dense=("input", "grad_out"),
        results=(LIKE_INPUT,),
        parameters=("weight", "running_mean", "running_var"),
        per_channel=True,
        flops=12,
        primitive="batch_norm_backward",
    ),
)
