"""Rows of normalization over channels (batch norm) and groups of them (group norm).

Tensors may be contiguous or channels_last: of both, `inner` elements of a channel lie
side by side.
"""

from xpurt.kernels.normalization import OF_PARAMETERS, PARTS, SHARED
from xpurt.kernels.row import FLOATING_ONLY
from xpurt.kernels.steps import Result, Scratch, Step, Steps

# Offset of element e of a channel, and channel of an offset. Divisions of 32 bits are
# much faster than those of 64.
CHANNELS = (
    SHARED
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

# Parts of a channel have means and sums of squares of their own, which are put
# together as in Chan, Golub and LeVeque, 1979.
PART_MOMENTS = Step(
    over="mean_parts",
    lanes=True,
    text="""
  CHANNEL_LAYOUT
  const long part = i / channels, c = i % channels;
  const long first = part * share, last = min(count, first + share);
  C sum = 0, squares = 0;
  along(first, last, sum += input_load(in_channel(j, c, channels, inner));)
  across(sum, plus)
  const C mean = last > first ? sum / (last - first) : 0;
  along(first, last,
    const C x = input_load(in_channel(j, c, channels, inner)) - mean;
    squares += x * x;
  )
  across(squares, plus)
  if (lane == 0) {
    mean_parts_store(i, mean);
    squares_parts_store(i, squares);
  }
""",
)

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
""",
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

# Sums of the gradient, and of its products with the input less its mean.
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

PART_SUMS = Step(
    over="sum_parts",
    lanes=True,
    also_reads=STATISTICS_READ,
    text="""
  CHANNEL_LAYOUT
  const long part = i / channels, c = i % channels;
  const long first = part * share, last = min(count, first + share);
  const C mean = mean_of(c);
  C sum = 0, dot = 0;
  along(first, last,
    const long at = in_channel(j, c, channels, inner);
    const C g = grad_out_load(at);
    sum += g;
    dot += g * (input_load(at) - mean);
  )
  across(sum, plus)
  across(dot, plus)
  if (lane == 0) {
    sum_parts_store(i, sum);
    dot_parts_store(i, dot);
  }
""",
)

SUMS = Step(
    over="sums",
    also_reads=STATISTICS_READ,
    text=f"""
  CHANNEL_LAYOUT
  C sum = 0, dot = 0;
  for (long part = 0; part < {PARTS}; ++part) {{
    sum += sum_parts_load(part * channels + i);
    dot += dot_parts_load(part * channels + i);
  }}
  sums_store(i, sum);
  dots_store(i, dot);
#if HAS_out1
  out1_store(i, dot * rstd_of(i));
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

# Group norm: places are groups; the j-th element of one is element j % HxW of channel
# j / HxW of it.
GROUPS = (
    CHANNELS
    + """
#define GROUP_LAYOUT                                              \\
  const long channels = input_size(1), in_group = channels / group; \\
  const long spread = HxW, length = in_group * spread;
"""
)

GROUP_FORWARD = Step(
    over="out1",
    lanes=True,
    also_reads=("weight", "bias"),
    text="""
  GROUP_LAYOUT
  const long first = i % group * in_group, base = i * length;
  const long image = i / group * channels * spread;
  const bool last = channels > 1 && input_stride(1) == 1;
#define CHANNEL(j) (first + divided(j, spread))
#define AT(j) (last ? image + (j) % spread * channels + CHANNEL(j) : base + (j))
  C sum = 0, squares = 0;
  along(0, length, sum += input_load(AT(j));)
  across(sum, plus)
  const C mean = sum / length;
  along(0, length, const C x = input_load(AT(j)) - mean; squares += x * x;)
  across(squares, plus)
  const C rstd = 1 / sqrt(squares / length + (C)eps);
  along(0, length,
    const C x = (input_load(AT(j)) - mean) * rstd;
    out0_store(AT(j), x * weight_of(CHANNEL(j)) + bias_of(CHANNEL(j)));
  )
  if (lane == 0) {
    out1_store(i, mean);
    out2_store(i, rstd);
  }
""",
)

CHANNEL_SUMS = Step(
    over="sums",
    lanes=True,
    text="""
  const long base = i * HxW;
  C sum = 0, dot = 0;
  along(0, HxW,
    const C g = grad_out_load(base + j);
    sum += g;
    dot += g * input_load(base + j);
  )
  across(sum, plus)
  across(dot, plus)
  if (lane == 0) {
    sums_store(i, sum);
    dots_store(i, dot);
  }
""",
)

# The gradient of the input is g * w * rstd + slope * x + offset in a group.
GROUP_SLOPES = Step(
    over="mean",
    also_reads=("weight",),
    text="""
  GROUP_LAYOUT
  const C middle = mean_load(i), scale = rstd_load(i);
  C sum = 0, dot = 0;
  for (long k = 0; k < in_group; ++k) {
    const C w = weight_of(i % group * in_group + k);
    sum += w * sums_load(i * in_group + k);
    dot += w * dots_load(i * in_group + k);
  }
  const C slope = (sum * middle - dot) * scale * scale * scale / length;
  slopes_store(i, slope);
  offsets_store(i, -slope * middle - sum * scale / length);
""",
)

GROUP_TO_INPUT = Step(
    over="out0",
    also_reads=("weight",),
    text="""
  GROUP_LAYOUT
  const long line = divided(i, spread), c = line % channels;
  const long g = divided(line, in_group);
  const long at = out0_stride(1) == 1 && channels > 1
                      ? (line / channels * spread + i - line * spread) * channels + c
                      : i;
  const C scaled = grad_out_load(i) * weight_of(c) * rstd_load(g);
  out0_store(at, scaled + slopes_load(g) * input_load(i) + offsets_load(g));
""",
)

GROUP_TO_WEIGHT = Step(
    over="out1",
    text="""
  GROUP_LAYOUT
  C sum = 0;
  for (long n = 0; n < input_size(0); ++n) {
    const long c = n * channels + i, g = n * group + i / in_group;
    sum += (dots_load(c) - mean_load(g) * sums_load(c)) * rstd_load(g);
  }
  out1_store(i, sum);
""",
)

GROUP_TO_BIAS = Step(
    over="out2",
    text="""
  C sum = 0;
  for (long n = 0; n < input_size(0); ++n) sum += sums_load(n * input_size(1) + i);
  out2_store(i, sum);
""",
)

LIKE_INPUT = Result(laid_out_like="input")
SAVED = Result(
    type_of=("weight", "bias", "running_mean", "input"), empty_without="training"
)

BATCH_ROWS = (
    *(
        Steps(
            name,
            (PART_MOMENTS, MOMENTS, NORMALIZE),
            FLOATING_ONLY,
            scratch=(
                Scratch("mean_parts", "out1", copies=PARTS),
                Scratch("squares_parts", "out1", copies=PARTS),
            ),
            functions=CHANNELS,
            contiguous=("weight", "bias"),
            dense=("input",),
            results=(LIKE_INPUT, SAVED, SAVED),
            overloads=overloads,
            flops=8,
        )
        # That of `out` has no meta function.
        for name, overloads in (
            ("native_batch_norm", ()),
            ("_native_batch_norm_legit", ("", "no_stats")),
        )
    ),
    Steps(
        "native_batch_norm_backward",
        (PART_SUMS, SUMS, TO_INPUT),
        FLOATING_ONLY,
        scratch=(
            Scratch("sum_parts", "input", dims=(1,), copies=PARTS),
            Scratch("dot_parts", "input", dims=(1,), copies=PARTS),
            Scratch("sums", "input", dims=(1,)),
            Scratch("dots", "input", dims=(1,)),
        ),
        functions=CHANNELS + STATISTICS,
        contiguous=("weight", "save_mean", "save_invstd"),
        dense=("input", "grad_out"),
        results=(LIKE_INPUT,),
        flops=12,
    ),
)

GROUP_ROWS = (
    Steps(
        "native_group_norm",
        (GROUP_FORWARD,),
        FLOATING_ONLY,
        functions=GROUPS,
        contiguous=("weight", "bias"),
        dense=("input",),
        results=(LIKE_INPUT, OF_PARAMETERS, OF_PARAMETERS),
        flops=8,
    ),
    Steps(
        "native_group_norm_backward",
        (CHANNEL_SUMS, GROUP_SLOPES, GROUP_TO_INPUT, GROUP_TO_WEIGHT, GROUP_TO_BIAS),
        FLOATING_ONLY,
        scratch=(
            Scratch("sums", "input", dims=(0, 1)),
            Scratch("dots", "input", dims=(0, 1)),
            Scratch("slopes", "mean"),
            Scratch("offsets", "mean"),
        ),
        functions=GROUPS,
        contiguous=("grad_out", "input", "mean", "rstd", "weight"),
        flops=12,
    ),
)

ROWS = (*BATCH_ROWS, *GROUP_ROWS)
