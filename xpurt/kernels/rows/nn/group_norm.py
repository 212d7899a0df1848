"""Rows of normalization over groups of channels.

Tensors may be contiguous or channels_last.
"""

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Scratch, Step
from xpurt.kernels.kinds.row import FLOATING_ONLY
from xpurt.kernels.rows.nn.channel_norm import CHANNELS, LIKE_INPUT
from xpurt.kernels.rows.nn.normalization import OF_PARAMETERS

# A work-item computes a group. The j-th element of a group is element j % HxW of its
# channel j / HxW.
GROUPS = (
    CHANNELS
    + """
#define GROUP_LAYOUT                                              \\
  const long channels = input_size(1), in_group = channels / group; \\
  const long spread = HxW, count = in_group * spread;
"""
)

GROUP_FORWARD = Step(
    over="out1",
    lanes=True,
    also_reads=("weight", "bias"),
    text="""
  GROUP_LAYOUT
  const long first = i % group * in_group, base = i * count;
  const long image = i / group * channels * spread;
  const bool last = channels > 1 && input_stride(1) == 1;
#define CHANNEL(j) (first + divided(j, spread))
#define AT(j) (last ? image + (j) % spread * channels + CHANNEL(j) : base + (j))
  C sum = 0, rest = 0, squares = 0;
  in_blocks(0, count) {
    C block = 0;
    along(begin, end, block += input_load(AT(j));)
    sum += block;
  }
  across(sum, plus)
  const C mean = sum / count;
  in_blocks(0, count) {
    C block = 0, block_squares = 0;
    along(begin, end,
      const C x = input_load(AT(j)) - mean;
      block += x;
      block_squares += x * x;
    )
    rest += block;
    squares += block_squares;
  }
  across(rest, plus)
  across(squares, plus)
  const C off = rest / count;
  const C variance = squares / count - off * off;
  const C rstd = 1 / sqrt((variance < 0 ? 0 : variance) + (C)eps);
  along(0, count,
    const C x = (input_load(AT(j)) - mean - off) * rstd;
    out0_store(AT(j), x * weight_of(CHANNEL(j)) + bias_of(CHANNEL(j)));
  )
  if (lane == 0) {
    out1_store(i, mean + off);
    out2_store(i, rstd);
  }
""",
)

CHANNEL_SUMS = Step(
    over="sums",
    lanes=True,
    text="""
  const long base = i * HxW;
  C sum = 0, product = 0;
  in_blocks(0, HxW) {
    C block = 0, block_product = 0;
    along(begin, end,
      const C g = grad_out_load(base + j);
      block += g;
      block_product += g * input_load(base + j);
    )
    sum += block;
    product += block_product;
  }
  across(sum, plus)
  across(product, plus)
  if (lane == 0) {
    sums_store(i, sum);
    dots_store(i, product);
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
  C sum = 0, product = 0;
  for (long k = 0; k < in_group; ++k) {
    const C w = weight_of(i % group * in_group + k);
    sum += w * sums_load(i * in_group + k);
    product += w * dots_load(i * in_group + k);
  }
  const C slope = (sum * middle - product) * scale * scale * scale / count;
  slopes_store(i, slope);
  offsets_store(i, -slope * middle - sum * scale / count);
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

# PyTorch's CPU kernel takes the sizes from these alone.
COUNTS = ("N", "C", "HxW")

ROWS = (
    CustomKernel(
        "native_group_norm",
        (GROUP_FORWARD,),
        FLOATING_ONLY,
        parameters=("weight", "bias"),
        counts=COUNTS,
        functions=GROUPS,
        contiguous=("weight", "bias"),
        dense=("input",),
        results=(LIKE_INPUT, OF_PARAMETERS, OF_PARAMETERS),
        flops=8,
    ),
    CustomKernel(
        "native_group_norm_backward",
        (CHANNEL_SUMS, GROUP_SLOPES, GROUP_TO_INPUT, GROUP_TO_WEIGHT, GROUP_TO_BIAS),
        FLOATING_ONLY,
        scratch=(
            Scratch("sums", "input", dims=(0, 1)),
            Scratch("dots", "input", dims=(0, 1)),
            Scratch("slopes", "mean"),
            Scratch("offsets", "mean"),
        ),
        counts=COUNTS,
        functions=GROUPS,
        contiguous=("grad_out", "input", "mean", "rstd", "weight"),
        flops=12,
    ),
)
